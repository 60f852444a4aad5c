// SPDX-License-Identifier: MIT
// A case on a device against the oracle: what the planner chooses, then every engine that applies.
#pragma once

#include "engine/engine.hpp"
#include "support/cases.hpp"

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
    std::set<const Engine*> tried;       ///< ran in some plan
    std::set<const Engine*> for_others;  ///< would apply on a device of another kind
};

/// Calls the operator eagerly, forward and backward, by the planner's choice and then with each
/// engine that applies forced, and compares all results with the oracle, and two runs with each
/// other bit by bit. Adds to `tally`; throws nothing of the library's.
void check_case(const Context& device, const Case& one, unsigned seed, Tally& tally);

}  // namespace dlprim::testing
