// SPDX-License-Identifier: MIT
// How far results are from expected ones, and how far they may be. Every comparison of an engine or
// an operator uses these functions: the library's checks, the tuner, the self-test, and the tests.
#pragma once

#include "engine/problem.hpp"

#include <dlprim/precision.hpp>

#include <cstddef>
#include <string>
#include <vector>

namespace dlprim {

/// Values that were rounded on the way to a result: to which format, and how often in a row.
struct Rounding {
    Precision format = Precision::fp32;
    int times = 0;
};

/// The rule of tolerance: the relative error, in the L2 norm, that a result of the type may have.
///
/// - Integers and booleans must be equal.
/// - Doubles may be off by 1e-12 and floats by 1e-5, which covers another order of summation and
///   Winograd's method.
/// - A rounding to half or tf32 (11 significant bits) is off by at most half a unit in the last
///   place, which is 2^-11 of the value, and one to bfloat16 (8 bits) by 2^-8. Roundings in a row
///   add up. A stored half or bfloat16 counts two of them, for operators that consist of two
///   operations (a sum and its activation).
double allowed_error(DType result, const Rounding& rounding = {});

/// The tolerance for an operator whose result is compared with its oracle's, if the factors of its
/// products are rounded to `factors`. Such roundings are four: those of two operands in two
/// consecutive products, which are that of the gradient and the forward product on whose result it
/// depends.
double allowed_operator_error(DType result, Precision factors);

/// The tolerance for two engines that compute one problem. If it stores or computes in a short
/// format, the roundings are three: those of two factors, and that of the result.
double allowed_engine_error(const Problem& problem, DType output);

/// The root of the sum of squares.
double norm(const std::vector<double>& values);

/// Relative distance in the L2 norm. Infinite values and NaN must be equal; otherwise the distance
/// is infinite, as it is if the sizes differ. A norm below `least` counts as `least`, for results
/// that are zero except for rounding.
double relative_error(const std::vector<double>& found, const std::vector<double>& wanted,
                      double least = 1e-30);

/// The values as the type stores them, and rounded to those that it can hold. Integers wrap around.
std::vector<std::byte> stored_as(DType dtype, const std::vector<double>& values);
void round_to(DType dtype, std::vector<double>& values);

/// The results of a problem's outputs.
using Results = std::vector<std::vector<double>>;

/// The output whose error exceeds its tolerance the most.
struct Excess {
    double times = 0;  ///< its error relative to the tolerance; 0: all outputs are right
    std::string what;  ///< "output 0 of shape [2, 3] is off by 0.1 of its size"
};
/// Compares the results of two engines for inputs whose root mean square is 1; so a root mean
/// square of a result below 0.01 counts as 0.01. If `elementwise`, each element counts for itself,
/// relative to its size or to 1 if that is more: among edges, the largest would hide all others.
Excess largest_excess(const Problem& problem, const Results& found, const Results& wanted,
                      bool elementwise);

}  // namespace dlprim
