// SPDX-License-Identifier: MIT
// Comparing engines on random data: what must not be random, and how far results may be from
// expected ones.
#pragma once

#include "engine/problem.hpp"

#include <vector>

namespace dlprim {

/// The relative error, in the L2 norm, that float results may have. It covers another order of
/// summation and Winograd's method. Rounding factors to 11 bits, as tf32 does, gives 3e-4.
inline constexpr double float_result_tolerance = 1e-5;

/// The input that holds class numbers, or rows of a table, which random floats are not; -1: none.
int label_input_of(const Problem& problem);

/// Relative distance in the L2 norm. Infinite values and NaN must be equal; otherwise the distance
/// is infinite. If the root mean square is below 0.01, the distance is relative to 0.01: inputs
/// have a root mean square of 1, and results that are zero except for rounding have no meaningful
/// size.
double result_distance(const std::vector<double>& found, const std::vector<double>& wanted);

/// The largest distance of an element, relative to its size or to 1 if that is more. Infinite
/// values and NaN must be equal, or the distance is infinite.
double largest_distance(const std::vector<double>& found, const std::vector<double>& wanted);

/// The tolerance for an output of that type. Factors and stored values that are rounded to 11 or 8
/// bits each contribute an error of half a unit in the last of these bits.
double result_tolerance(const Problem& problem, DType output);

}  // namespace dlprim
