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
    // Narrow types: see is_narrow(). The names are ONNX's: e4m3 has 4 bits of exponent and 3 of
    // mantissa, fn has no infinity, and uz has no negative zero.
    f8e4m3fn,
    f8e4m3fnuz,
    f8e5m2,
    f8e5m2fnuz,
    f8e8m0,  ///< 8 bits of exponent, without sign and mantissa: powers of two
    f4e2m1,
    i4,
    u4,
    i2,
    u2,
};

/// Bytes of one element in memory; 1 for every narrow type.
std::size_t size_of(DType dtype) noexcept;
/// The name used in JSON and messages: "float", "half", "bfloat16", "double", "int8", "uint8",
/// "int16", "uint16", "int32", "uint32", "int64", "uint64", "bool", "float8e4m3fn",
/// "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz", "float8e8m0", "float4e2m1", "int4", "uint4",
/// "int2", "uint2".
std::string_view name_of(DType dtype) noexcept;
/// The inverse of name_of(). It also takes "int" (int32), "float32", "float16", "float64", and the
/// names of narrow floats in Python's ml_dtypes ("float8_e4m3fn"). Throws Error(invalid_argument),
/// which offers the nearest name, for any other text.
DType parse_dtype(std::string_view name);
/// Whether it is f32, f16, bf16 or f64.
bool is_float(DType dtype) noexcept;
/// Whether it is an integer of 8 bits or more, with or without a sign. boolean is none.
bool is_integer(DType dtype) noexcept;
/// Whether it is a storage type of 8 bits or fewer. Cast converts narrow types, operators that only
/// move elements move them, and no other operator takes them. An element occupies one byte and uses
/// its low bits. In the other bits int4 and int2 repeat their sign, and the others have zeros. A
/// narrow type is neither is_float() nor is_integer().
bool is_narrow(DType dtype) noexcept;

/// Conversions of single elements. To 16 bits they round to the nearest, ties to even.
float half_to_float(std::uint16_t bits) noexcept;
std::uint16_t float_to_half(float value) noexcept;
float bfloat16_to_float(std::uint16_t bits) noexcept;
std::uint16_t float_to_bfloat16(float value) noexcept;

/// Converts `count` elements between any two dtypes on the host. `from` and `to` belong to the
/// caller and must not overlap. Conversions are C's, with three additions: float to integer
/// saturates, NaN becomes 0 as an integer, and every number but 0 becomes true as a boolean.
///
/// Narrow floats round to the nearest, ties to even. A number that is too large becomes infinity.
/// In a type without infinity it becomes NaN, and in float4e2m1, which has neither, the largest
/// number. float8e8m0 takes the nearest power of two, and ties go up; a number that is too small
/// becomes the smallest power, and a negative number NaN. Narrow integers keep the low bits of an
/// integer.
void convert(const void* from, DType from_dtype, void* to, DType to_dtype, std::size_t count);

}  // namespace dlprim
