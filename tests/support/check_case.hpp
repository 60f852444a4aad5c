// SPDX-License-Identifier: MIT
// A case on a device against the oracle: what the planner chooses, then engines that apply, forced.
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

/// What calls of cases give random operators.
inline constexpr std::uint64_t call_seed = 5, call_step = 3;

/// The oracle's answers.
struct Expected {
    std::vector<HostArray> outputs, output_gradients, gradients;
    std::vector<HostArray> terms;  ///< of gradients: see OracleBackwardCall
    std::vector<std::pair<int, HostArray>> updated;
};
/// Gradients where the case has them, for output gradients made from the seed after `seed`.
Expected ask_oracle(const Case& one, const CaseData& data, unsigned seed);

std::vector<Tensor> upload(const Context& device, const std::vector<HostArray>& arrays);

/// The root of the sum of squares.
double norm(const std::vector<double>& values);

/// How far from the oracle a result of that type may be, relative L2, by the engines of the plan.
double tolerance(DType dtype, Precision precision, const Plan& plan);

/// Calls the operator eagerly, forward and backward, by the planner's choice and then with engines
/// that apply forced, as tally.turns says, and compares all results with the oracle, and two runs
/// with each other bit by bit. Of tf32 results come as close as its rounding lets them, of engines
/// without a way for it as close as of fp32. Adds to `tally`; throws nothing of the library's.
void check_case(const Context& device, const Case& one, unsigned seed, Precision precision,
                Tally& tally);

}  // namespace dlprim::testing
