// SPDX-License-Identifier: MIT
// See convert.hpp.
#include "memory/convert.hpp"

#include "device/errors.hpp"

namespace dlprim_torch {

void copy(const dp::Tensor& from, const dp::Tensor& to) {
    if (!to.shape().empty()) translated([&] { dp::ops::copy(from, to); });
}

void fill(const dp::Tensor& to, double value) {
    translated([&] {
        dp::Tensor target = to;
        target.fill(value);
    });
}

dp::Tensor plain(const dp::Tensor& tensor) {
    return translated([&] { return tensor.to_contiguous(); });
}

dp::Tensor bits_as(const dp::Tensor& tensor, dp::DType dtype) {
    const bool same_size = dp::size_of(dtype) == dp::size_of(tensor.dtype());
    return translated([&] {
        return (same_size ? tensor : tensor.reshape({tensor.shape().numel()})).bit_cast(dtype);
    });
}

}  // namespace dlprim_torch
