// SPDX-License-Identifier: MIT
// Engines outside of a plan: every engine that applies to a problem, in each of its layouts, is
// compared with results that the caller knows.
#pragma once

#include "check/compare.hpp"
#include "check/engine_run.hpp"
#include "graph/operator.hpp"
#include "support/turns.hpp"

#include <dlprim/context.hpp>

#include <random>
#include <string_view>
#include <vector>

namespace dlprim::testing {

/// The tolerance for a problem with operands of these types. It leaves no room for the problem's
/// precision, since 6x6 tiles, which tf32 allows, must be as exact as float.
inline double tolerance(Problem problem) {
    problem.precision = Precision::fp32;
    return allowed_engine_error(problem, DType::f32);
}

/// The outputs of an engine. Checks that a second run has the same bits, that only outputs
/// are written, and that the padding of channels is zero. Calls begin operands by turns where
/// vectors are aligned and where they are not. What addresses strides may rely on plain operands to
/// be aligned: it gets others as strided ones.
Results run_engine(const Context& context, const EngineWay& way,
                   const std::vector<HostArray>& inputs);

/// What check_engines() tries.
struct Trials {
    /// Parts of engines' names: all others are left out. Empty: none are.
    std::vector<std::string_view> only = {};
    bool every_call = false;  ///< whether trials do not wait for their turns
    /// Whether each combination of a tile and stages is tried that an engine has, with each other
    /// value alone, or the runtime's sample of these. Otherwise only the default tuning is.
    bool all_tunings = false;
};

/// Runs the problem with every engine of the context's device that applies, in all layouts that it
/// has for it, and compares the first output with `wanted`. The inputs' values are rounded to the
/// types of the problem's operands.
void check_engines(const Context& context, const Problem& problem,
                   const std::vector<HostArray>& inputs, const std::vector<double>& wanted,
                   const Trials& trials = {});

/// Which engines check_engines() has run in this program.
Turns& engine_turns();

/// A problem of an operator, with plain layouts.
Problem problem_of(std::string_view op, const Attrs& attrs, const std::vector<Shape>& inputs,
                   const Shape& output);

/// Numbers of a normal distribution, rounded to those that the type can hold.
HostArray normals(const Shape& shape, std::mt19937& random, DType dtype = DType::f32);

/// Rounds to whole numbers from -255 to 255, the ends often.
void make_small_integers(HostArray& array);

/// The number of random problems that a test tries: 200, or DLPRIM_TEST_RANDOM.
unsigned random_problems();

}  // namespace dlprim::testing
