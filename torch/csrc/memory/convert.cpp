// SPDX-License-Identifier: MIT
// See convert.hpp. A library without views in eager calls, which lacks ops::copy() and
// Tensor::bit_cast(), copies strided tensors by way of the host.
#include "memory/convert.hpp"

#include "device/errors.hpp"

#include <cstddef>

namespace dlprim::ops {
void copy(const Tensor& from, const Tensor& to);  // where the library has it
}

namespace dlprim_torch {
namespace {

/// Elements of the type that Pointwise computes with, converted to the other's type.
dp::Tensor converted(const dp::Tensor& from, dp::DType dtype) {
    if (from.dtype() == dtype) return from;
    const char* const code = dtype == dp::DType::boolean ? "y0 = x0 != 0" : "y0 = x0";
    return dp::ops::call(dp::ops::Pointwise{.code = code, .dtypes = {dtype}}, {from}).front();
}

/// By way of the host, which waits.
void copy_over_host(const dp::Tensor& from, const dp::Tensor& to) {
    std::vector<std::byte> bytes(from.bytes());
    from.copy_to_host(bytes.data(), bytes.size());
    dp::Tensor target = to;
    target.copy_from_host(bytes.data(), bytes.size());
}

template <typename T>
void copy_elements(const T& from, const T& to) {
    if constexpr (has_views<T>) {
        dp::ops::copy(from, to);
    } else {
        const dp::Tensor values = converted(plain(from), to.dtype());
        if (!to.contiguous()) return copy_over_host(values, to);
        dp::ops::CallOptions how;
        how.out = {to};
        dp::ops::call(dp::ops::Pointwise{.code = "y0 = x0", .dtypes = {to.dtype()}}, {values}, {},
                      how);
    }
}

template <typename T>
T cast_bits(const T& tensor, dp::DType dtype) {
    if constexpr (has_views<T>) {
        const bool same_size = dp::size_of(dtype) == dp::size_of(tensor.dtype());
        return (same_size ? tensor : tensor.reshape({tensor.shape().numel()})).bit_cast(dtype);
    } else {
        const std::size_t from = dp::size_of(tensor.dtype()), size = dp::size_of(dtype);
        const dp::Shape shape = from == size
                                    ? tensor.shape()
                                    : dp::Shape{static_cast<std::int64_t>(tensor.bytes() / size)};
        const dp::opencl::Memory memory = dp::opencl::memory(tensor);
        return dp::Tensor::wrap_opencl(tensor.context(), memory.memory, memory.byte_offset, shape,
                                       dtype);
    }
}

}  // namespace

dp::Tensor plain(const dp::Tensor& tensor) {
    if (tensor.contiguous()) return tensor;
    return translated([&] { return tensor.to_contiguous(); });
}

void copy(const dp::Tensor& from, const dp::Tensor& to) {
    if (to.shape().empty()) return;
    translated([&] { copy_elements(from, to); });
}

void fill(const dp::Tensor& to, double value) {
    translated([&] {
        dp::Tensor target = to;
        target.fill(value);
    });
}

dp::Tensor bits_as(const dp::Tensor& tensor, dp::DType dtype) {
    return cast_bits(tensor, dtype);
}

}  // namespace dlprim_torch
