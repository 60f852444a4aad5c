// SPDX-License-Identifier: MIT
// What operators that choose, order and count elements have in common.
#pragma once

#include "fallback/fallback.hpp"
#include "ops/call.hpp"

#include <ATen/WrapDimUtils.h>
#include <ATen/native/Resize.h>
#include <c10/core/DeviceGuard.h>

#include <string_view>

namespace dlprim_torch {

/// A tensor without dimensions as one of a single element.
inline at::Tensor as_line(const at::Tensor& tensor) {
    return tensor.dim() == 0 ? tensor.unsqueeze(0) : tensor;
}

/// What the library calls one of PyTorch's reductions of scattered elements.
inline std::string name_of_reduction(std::string_view reduce) {
    if (reduce == "sum") return "add";
    if (reduce == "prod") return "mul";
    return std::string(reduce == "amax" ? "max" : reduce == "amin" ? "min" : reduce);
}

/// `self` as the result of an operator that has nothing to change.
inline void keep(const at::Tensor& out, const at::Tensor& self) {
    if (!out.is_same(self)) out.copy_(self);
}

/// The sizes without dimension `axis`, or with 1 in its place.
inline std::vector<std::int64_t> without(c10::IntArrayRef sizes, std::int64_t axis, bool keep_dim) {
    std::vector<std::int64_t> kept = sizes.vec();
    if (kept.empty()) return kept;
    if (keep_dim)
        kept[static_cast<std::size_t>(axis)] = 1;
    else
        kept.erase(kept.begin() + axis);
    return kept;
}

/// How many elements of the last dimension of `sorted` are below each value; with `right` those
/// that are equal count, too. `sorted` has one dimension, or all but the last in common with
/// `values`. int64.
at::Tensor count_below(const at::Tensor& sorted, const at::Tensor& values, bool right);

}  // namespace dlprim_torch
