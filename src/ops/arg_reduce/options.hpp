// SPDX-License-Identifier: MIT
// ArgReduce's options and the lines that they cut a tensor into.
#pragma once

#include "base/attrs.hpp"
#include "engine/lines.hpp"

namespace dlprim::arg_reduce {

constexpr const char* type = "ArgReduce";

struct Options {
    bool largest, keep_dim, values;
    int dim = -1;  ///< -1: all elements are one line
    AxisLines lines;
    Shape result;

    /// Throws Error(invalid_argument), also where a line has no elements.
    Options(const Attrs& attrs, const Shape& x);
};

}  // namespace dlprim::arg_reduce
