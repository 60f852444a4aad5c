// SPDX-License-Identifier: MIT
// Dimensions over which operators reduce.
#pragma once

#include "common.hpp"

#include <bitset>

namespace dlprim_torch {

using Dims = std::bitset<64>;

/// The dimensions that a list names, which may be negative; an empty list names all.
Dims dims_of(c10::IntArrayRef list, std::int64_t rank);
/// All dimensions but one.
Dims all_but(std::int64_t dim, std::int64_t rank);
/// Their text in a reduction of a program: "[0,2]".
std::string axes_of(const Dims& dims, std::int64_t rank);
/// The sizes of a reduction's result.
std::vector<std::int64_t> result_sizes(c10::IntArrayRef sizes, const Dims& dims, bool keep_dim);

}  // namespace dlprim_torch
