// SPDX-License-Identifier: MIT
// Elements of tensors on the host for engines written once for all float types: each type converts
// to the one in which sums are computed, and back, rounded to the nearest.
#pragma once

#include "base/number_types.hpp"

#include <dlprim/dtype.hpp>
#include <dlprim/error.hpp>

#include <cstdint>

namespace dlprim {

/// An element in memory of f16 and of bf16.
struct HostHalf {
    std::uint16_t bits;
    HostHalf() = default;
    HostHalf(float value) : bits(float_to_half(value)) {}
    operator float() const { return half_to_float(bits); }
};
struct HostBfloat {
    std::uint16_t bits;
    HostBfloat() = default;
    HostBfloat(float value) : bits(float_to_bfloat16(value)) {}
    operator float() const { return bfloat16_to_float(bits); }
};

/// The type in which sums of elements of type T are computed.
template <typename T>
struct HostSum {
    using type = float;
};
template <>
struct HostSum<double> {
    using type = double;
};
template <typename T>
using HostSumOf = typename HostSum<T>::type;

/// Calls work(T{}) with the host's type of a float dtype. Throws Error(unsupported) for others.
template <typename Work>
decltype(auto) with_float_type(DType dtype, Work&& work) {
    switch (dtype) {
        case DType::f32:
            return work(float{});
        case DType::f64:
            return work(double{});
        case DType::f16:
            // NOLINTNEXTLINE(clang-analyzer-cplusplus.NewDeleteLeaks): the caller owns the result
            return work(HostHalf{});
        case DType::bf16:
            // NOLINTNEXTLINE(clang-analyzer-cplusplus.NewDeleteLeaks): likewise
            return work(HostBfloat{});
        default:
            throw Error(ErrorKind::unsupported, "the engine computes with float types only");
    }
}

/// The same for doubles and integers.
template <typename Work>
decltype(auto) with_wide_type(DType dtype, Work&& work) {
    const auto refuse = [&]() -> decltype(work(double{})) {
        throw Error(ErrorKind::unsupported, "the engine computes with doubles and integers");
    };
    if (dtype == DType::f32) return refuse();
    return with_number_type(dtype, work, refuse);
}

}  // namespace dlprim
