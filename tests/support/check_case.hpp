// SPDX-License-Identifier: MIT
// Compares a case on a device with the oracle: first with the planner's choice, then with each
// engine that applies.
#pragma once

#include "engine/engine.hpp"
#include "plan/plan.hpp"
#include "support/cases.hpp"
#include "support/turns.hpp"

#include <dlprim/context.hpp>
#include <dlprim/tensor.hpp>

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

/// The seed and step that random operators get in the cases.
inline constexpr std::uint64_t call_seed = 5, call_step = 3;

/// The oracle's results.
struct Expected {
    std::vector<HostArray> outputs, output_gradients, gradients;
    std::vector<HostArray> terms;  ///< of gradients: see OracleBackwardCall
    std::vector<std::pair<int, HostArray>> updated;
};
/// Includes gradients if the case has them. Output gradients are made from the seed after `seed`.
Expected ask_oracle(const Case& one, const CaseData& data, unsigned seed);

std::vector<Tensor> upload(const Context& device, const std::vector<HostArray>& arrays);

/// The root of the sum of squares.
double norm(const std::vector<double>& values);

/// The allowed relative L2 distance from the oracle for a result of this type and the plan's
/// engines.
double tolerance(DType dtype, Precision precision, const Plan& plan);

/// Calls the operator eagerly, forward and backward, with the planner's choice and then with
/// engines that apply, as tally.turns selects them, and the planner's choice on strided views of
/// all operands. Compares all results with the oracle, and two runs with each other bit by bit.
/// Results in tf32 must be as exact as its rounding allows, and those of engines without tf32 as
/// exact as fp32. Updates `tally`. Throws no exception of the library.
void check_case(const Context& device, const Case& one, unsigned seed, Precision precision,
                Tally& tally);

}  // namespace dlprim::testing
