// SPDX-License-Identifier: MIT
// Element types: sizes, names and host conversions between any two of them.
#include <dlprim/dtype.hpp>

#include "base/narrow.hpp"
#include "base/number_types.hpp"
#include "base/odd_float.hpp"
#include "base/text.hpp"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

namespace dlprim {

std::size_t size_of(DType dtype) noexcept {
    switch (dtype) {
        case DType::f64:
        case DType::i64:
        case DType::u64:
            return 8;
        case DType::f32:
        case DType::i32:
        case DType::u32:
            return 4;
        case DType::f16:
        case DType::bf16:
        case DType::i16:
        case DType::u16:
            return 2;
        default:
            return 1;
    }
}

namespace {

// By the number of a DType; then other names that are read.
constexpr std::string_view names[] = {
    "float",      "half",         "bfloat16",       "double",     "int8",           "uint8",
    "int16",      "uint16",       "int32",          "uint32",     "int64",          "bool",
    "uint64",     "float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz", "float8e8m0",
    "float4e2m1", "int4",         "uint4",          "int2",       "uint2"};
constexpr std::pair<std::string_view, DType> other_names[] = {
    {"int", DType::i32},
    {"float32", DType::f32},
    {"float16", DType::f16},
    {"float64", DType::f64},
    {"float8_e4m3fn", DType::f8e4m3fn},
    {"float8_e4m3fnuz", DType::f8e4m3fnuz},
    {"float8_e5m2", DType::f8e5m2},
    {"float8_e5m2fnuz", DType::f8e5m2fnuz},
    {"float8_e8m0fnu", DType::f8e8m0},
    {"float4_e2m1fn", DType::f4e2m1}};

}  // namespace

std::string_view name_of(DType dtype) noexcept {
    return names[static_cast<std::size_t>(dtype)];
}

DType parse_dtype(std::string_view name) {
    for (std::size_t i = 0; i < std::size(names); ++i)
        if (names[i] == name) return static_cast<DType>(i);
    std::vector<std::string> known(std::begin(names), std::end(names));
    for (const auto& [other, dtype] : other_names) {
        if (other == name) return dtype;
        known.emplace_back(other);
    }
    fail(ErrorKind::invalid_argument, "unknown element type '", name, "'",
         did_you_mean(name, known));
}

bool is_float(DType dtype) noexcept {
    return dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16 ||
           dtype == DType::f64;
}

bool is_integer(DType dtype) noexcept {
    return !is_float(dtype) && !is_narrow(dtype) && dtype != DType::boolean;
}

bool is_narrow(DType dtype) noexcept {
    return dtype > DType::u64;
}

float half_to_float(std::uint16_t bits) noexcept {
    const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000u) << 16;
    const std::uint32_t exponent = (bits >> 10) & 0x1fu;
    const std::uint32_t mantissa = bits & 0x3ffu;
    if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
    if (exponent != 0)
        return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
    // Zero or subnormal: the mantissa counts units of 2^-24, which a float holds exactly.
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
    return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(magnitude));
}

std::uint16_t float_to_half(float value) noexcept {
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t sign = (bits >> 16) & 0x8000u;
    const std::uint32_t magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u)  // NaN: keep the top of its payload, and quiet
        return static_cast<std::uint16_t>(sign | 0x7e00u | ((magnitude >> 13) & 0x3ffu));
    if (magnitude >= 0x477ff000u) return static_cast<std::uint16_t>(sign | 0x7c00u);  // 65520 up
    if (magnitude < 0x38800000u) {
        // Below 2^-14: adding 0.5 puts units of 2^-24 at the end of the mantissa, rounded to even.
        const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
        return static_cast<std::uint16_t>(sign |
                                          (std::bit_cast<std::uint32_t>(shifted) - 0x3f000000u));
    }
    const std::uint32_t odd = (magnitude >> 13) & 1u;
    return static_cast<std::uint16_t>(sign | ((magnitude - 0x38000000u + 0xfffu + odd) >> 13));
}

float bfloat16_to_float(std::uint16_t bits) noexcept {
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

std::uint16_t float_to_bfloat16(float value) noexcept {
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>((bits >> 16) | 0x40u);
    return static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

namespace {

// Storage of one element and the C++ value it stands for.
template <typename T>
struct Plain {
    using Stored = T;
    static T load(T stored) { return stored; }
};
struct HalfElement {
    using Stored = std::uint16_t;
    static float load(std::uint16_t stored) { return half_to_float(stored); }
};
struct BfloatElement {
    using Stored = std::uint16_t;
    static float load(std::uint16_t stored) { return bfloat16_to_float(stored); }
};
struct BoolElement {
    using Stored = std::uint8_t;
    static std::uint8_t load(std::uint8_t stored) { return stored != 0; }
};

template <DType dtype>
struct NarrowElement {
    using Stored = std::uint8_t;
    static float load(std::uint8_t stored) { return from_narrow(dtype, stored); }
};

template <typename T>
constexpr bool is_narrow_element = false;
template <DType dtype>
constexpr bool is_narrow_element<NarrowElement<dtype>> = true;
template <DType dtype>
std::uint8_t store_narrow(NarrowElement<dtype>, double value) {
    return to_narrow(dtype, value);
}
template <DType dtype, typename I>
std::uint8_t store_narrow(NarrowElement<dtype>, I value) requires std::is_integral_v<I> {
    // The low bits of an integer are exact where a double is not.
    if (is_narrow_integer(dtype)) return low_bits(dtype, static_cast<std::uint8_t>(value));
    return to_narrow(dtype, odd_double(value));
}

template <typename To, typename Value>
typename To::Stored store(Value value) {
    using Stored = typename To::Stored;
    if constexpr (std::is_same_v<To, BoolElement>)
        return static_cast<std::uint8_t>(value != 0);
    else if constexpr (is_narrow_element<To>)
        return store_narrow(To{}, value);
    else if constexpr (std::is_same_v<To, HalfElement>)
        return float_to_half(odd_float(value));
    else if constexpr (std::is_same_v<To, BfloatElement>)
        return float_to_bfloat16(odd_float(value));
    else
        return saturated<Stored>(value);
}

template <typename From, typename To>
void convert_all(const void* from, void* to, std::size_t count) {
    const auto* in = static_cast<const typename From::Stored*>(from);
    auto* out = static_cast<typename To::Stored*>(to);
    for (std::size_t i = 0; i < count; ++i) out[i] = store<To>(From::load(in[i]));
}

// Calls visit(Element{}) with the element type of `dtype`.
template <typename Visit>
void dispatch(DType dtype, Visit&& visit) {
    const auto others = [&] {
        switch (dtype) {
            case DType::f16:
                return visit(HalfElement{});
            case DType::bf16:
                return visit(BfloatElement{});
            case DType::boolean:
                return visit(BoolElement{});
            case DType::f8e4m3fn:
                return visit(NarrowElement<DType::f8e4m3fn>{});
            case DType::f8e4m3fnuz:
                return visit(NarrowElement<DType::f8e4m3fnuz>{});
            case DType::f8e5m2:
                return visit(NarrowElement<DType::f8e5m2>{});
            case DType::f8e5m2fnuz:
                return visit(NarrowElement<DType::f8e5m2fnuz>{});
            case DType::f8e8m0:
                return visit(NarrowElement<DType::f8e8m0>{});
            case DType::f4e2m1:
                return visit(NarrowElement<DType::f4e2m1>{});
            case DType::i4:
                return visit(NarrowElement<DType::i4>{});
            case DType::u4:
                return visit(NarrowElement<DType::u4>{});
            case DType::i2:
                return visit(NarrowElement<DType::i2>{});
            case DType::u2:
                return visit(NarrowElement<DType::u2>{});
            default:
                return;
        }
    };
    with_number_type(
        dtype, [&](auto zero) { visit(Plain<decltype(zero)>{}); }, others);
}

}  // namespace

void convert(const void* from, DType from_dtype, void* to, DType to_dtype, std::size_t count) {
    if (count == 0) return;
    if (from_dtype == to_dtype && from_dtype != DType::boolean) {
        std::memcpy(to, from, count * size_of(from_dtype));
        return;
    }
    dispatch(from_dtype, [&](auto from_element) {
        dispatch(to_dtype, [&](auto to_element) {
            convert_all<decltype(from_element), decltype(to_element)>(from, to, count);
        });
    });
}

}  // namespace dlprim
