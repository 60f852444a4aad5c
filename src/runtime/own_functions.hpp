// SPDX-License-Identifier: MIT
// OpenCL C texts of functions that a driver computes wrongly, in front of a program that calls
// them.
#pragma once

#include "runtime/math_functions.hpp"

#include <string>
#include <vector>

namespace dlprim {

/// A function that a program is to compute by our text, for some types. For none, only dlprim_NAME
/// is made, which is the driver's.
struct OwnFunction {
    const MathFunction* function;
    bool floats, doubles;
};

/// The functions `dlprim_NAME` of numbers and of vectors. They are the driver's for a type that is
/// not ours, and there are none of doubles unless `has_doubles`.
std::string own_functions(const std::vector<OwnFunction>& functions, bool has_doubles);
/// Lines after which NAME in a program is dlprim_NAME, for functions that are ours for a type.
std::string own_names(const std::vector<OwnFunction>& functions);

}  // namespace dlprim
