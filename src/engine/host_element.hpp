// SPDX-License-Identifier: MIT
// Elements of tensors on the host for engines written once for all float types: each type converts
// to the one in which sums are computed, and back, rounded to the nearest.
#pragma once

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
            return work(HostHalf{});
        case DType::bf16:
            return work(HostBfloat{});
        default:
            throw Error(ErrorKind::unsupported, "the engine computes with float types only");
    }
}

/// The same for doubles and integers.
template <typename Work>
decltype(auto) with_wide_type(DType dtype, Work&& work) {
    switch (dtype) {
        case DType::f64:
            return work(double{});
        case DType::i8:
            return work(std::int8_t{});
        case DType::u8:
            return work(std::uint8_t{});
        case DType::i16:
            return work(std::int16_t{});
        case DType::u16:
            return work(std::uint16_t{});
        case DType::i32:
            return work(std::int32_t{});
        case DType::u32:
            return work(std::uint32_t{});
        case DType::i64:
            return work(std::int64_t{});
        case DType::u64:
            return work(std::uint64_t{});
        default:
            throw Error(ErrorKind::unsupported, "the engine computes with doubles and integers");
    }
}

}  // namespace dlprim
