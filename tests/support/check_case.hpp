// SPDX-License-Identifier: MIT
// Compares a case on a device with the oracle: first with the planner's choice, then with each
// engine that applies.
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

/// The outcome of the cases on one device.
struct Tally {
    int cases = 0, runs = 0;
    std::vector<std::string> failures;
    std::map<std::string, int> skips;    ///< reason -> number of times
    std::map<const Engine*, int> tried;  ///< number of plans in which it ran
    std::set<const Engine*> applied;     ///< could have run in some plan
    std::set<const Engine*> for_others;  ///< would apply on a device of another kind
    Turns turns;                         ///< which engines to force, by operator and direction
};

/// Calls the operator eagerly, forward and backward, with the planner's choice and then with
/// engines that apply, as tally.turns selects them, and the planner's choice on strided views of
/// all operands. Compares all results with the oracle (exec/operator_check.hpp), and two runs with
/// each other bit by bit. Then runs engines in each of their layouts, and compares them with the
/// host's (check/engine_check.hpp). Updates `tally`. Throws no exception of the library.
void check_case(const Context& device, const Case& one, unsigned seed, Precision precision,
                Tally& tally);

}  // namespace dlprim::testing
