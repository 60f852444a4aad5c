// SPDX-License-Identifier: MIT
// A case on a device against the oracle: what the planner chooses, then engines that apply, forced.
#pragma once

#include "engine/engine.hpp"
#include "support/cases.hpp"
#include "support/turns.hpp"

#include <dlprim/context.hpp>

#include <map>
#include <set>
#include <string>
#include <vector>

namespace dlprim::testing {

/// What cases on one device came to.
struct Tally {
    int cases = 0, runs = 0;
    std::vector<std::string> failures;
    std::map<std::string, int> skips;    ///< reason -> how often
    std::map<const Engine*, int> tried;  ///< in how many plans it ran
    std::set<const Engine*> applied;     ///< could have run in some plan
    std::set<const Engine*> for_others;  ///< would apply on a device of another kind
    Turns turns;                         ///< of engines to be forced, by operator and direction
};

/// Calls the operator eagerly, forward and backward, by the planner's choice and then with engines
/// that apply forced, as tally.turns says, and compares all results with the oracle, and two runs
/// with each other bit by bit. Of tf32 results come as close as its rounding lets them, of engines
/// without a way for it as close as of fp32. Adds to `tally`; throws nothing of the library's.
void check_case(const Context& device, const Case& one, unsigned seed, Precision precision,
                Tally& tally);

}  // namespace dlprim::testing
