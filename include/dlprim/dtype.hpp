// SPDX-License-Identifier: MIT
// DType: the element types that a tensor can hold, and their names in network JSON.
#pragma once

#include <dlprim/namespace.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace dlprim {

enum class DType : std::uint8_t {
    f32,
    f16,
    bf16,
    f64,
    i8,
    u8,
    i16,
    u16,
    i32,
    u32,
    i64,
    boolean,  ///< one byte, 0 or 1
    u64,
    // Narrow types: see is_narrow().
    f8e4m3fn,
    f8e4m3fnuz,
    f8e5m2,
    f8e5m2fnuz,
    f8e8m0,  ///< powers of two
    f4e2m1,
    i4,
    u4,
    i2,
    u2,
};

/// Bytes of one element.
std::size_t size_of(DType dtype) noexcept;
/// The name used in JSON and messages: "float", "half", "bfloat16", "double", "int8", "uint8",
/// "int16", "uint16", "int32", "uint32", "int64", "uint64", "bool", "float8e4m3fn",
/// "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz", "float8e8m0", "float4e2m1", "int4", "uint4",
/// "int2", "uint2".
std::string_view name_of(DType dtype) noexcept;
/// Inverse of name_of(); also takes "float32", "float16", "float64", "int".
/// Throws Error(invalid_argument) naming the nearest known name.
DType parse_dtype(std::string_view name);
bool is_float(DType dtype) noexcept;
bool is_integer(DType dtype) noexcept;
/// Types that only store: Cast converts them, what moves elements moves them, and no other operator
/// takes them. Each element takes a byte, whose low bits it is; those of int4 and int2 extend the
/// sign. They are neither is_float() nor is_integer().
bool is_narrow(DType dtype) noexcept;

/// Round-to-nearest-even conversions of single elements.
float half_to_float(std::uint16_t bits) noexcept;
std::uint16_t float_to_half(float value) noexcept;
float bfloat16_to_float(std::uint16_t bits) noexcept;
std::uint16_t float_to_bfloat16(float value) noexcept;

/// Converts `count` elements between any two dtypes on the host (C's conversions; to boolean: x !=
/// 0; float to integer saturates, NaN becomes 0). `from` and `to` must not overlap.
///
/// Narrow floats round to the nearest, ties to even. What is too large becomes infinity, where a
/// type has none NaN, and in float4e2m1, which has neither, the largest number. float8e8m0 takes
/// the nearest power of two, ties go up; what is too small becomes the smallest one, a negative
/// number NaN. Narrow integers keep the low bits of an integer.
void convert(const void* from, DType from_dtype, void* to, DType to_dtype, std::size_t count);

}  // namespace dlprim
