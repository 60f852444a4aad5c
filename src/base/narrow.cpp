// SPDX-License-Identifier: MIT
// Elements of narrow types; see narrow.hpp. kernels/cast/narrow.cl is the same for OpenCL devices.
#include "base/narrow.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace dlprim {

namespace {

constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();
constexpr int power_bias = 127;  // of float8e8m0

int bits_of(DType dtype) {
    return dtype == DType::i4 || dtype == DType::u4 ? 4 : 2;
}

bool has_sign(DType dtype) {
    return dtype == DType::i4 || dtype == DType::i2;
}

int sign_bit(const NarrowFloat& type) {
    return 1 << (type.exponent_bits + type.mantissa_bits);
}

float from_float(const NarrowFloat& type, int code) {
    const int sign = code & sign_bit(type), rest = code & (sign_bit(type) - 1);
    if (type.one_zero && code == type.nan) return not_a_number;
    float value = 0;
    const int field = rest >> type.mantissa_bits, mantissa = rest & ((1 << type.mantissa_bits) - 1);
    if (rest > type.largest)
        value = rest == type.infinite && type.infinite != type.nan
                    ? std::numeric_limits<float>::infinity()
                    : not_a_number;
    else if (field == 0)
        value = std::ldexp(static_cast<float>(mantissa), 1 - type.bias - type.mantissa_bits);
    else
        value = std::ldexp(static_cast<float>(mantissa + (1 << type.mantissa_bits)),
                           field - type.bias - type.mantissa_bits);
    return sign != 0 ? -value : value;
}

std::uint8_t to_float(const NarrowFloat& type, double value) {
    const auto sign = static_cast<std::uint8_t>(std::signbit(value) ? sign_bit(type) : 0);
    const auto signed_code = [&](int code) {
        return static_cast<std::uint8_t>(
            type.one_zero && (code == 0 || code == type.nan) ? code : code | sign);
    };
    if (std::isnan(value)) return signed_code(type.nan);
    if (std::isinf(value)) return signed_code(type.infinite);
    // So that units below are few; it is larger than any of these types holds.
    const double size = std::min(std::abs(value), 0x1p100);
    const int smallest = 1 - type.bias;
    int exponent = size == 0 ? smallest : std::max(std::ilogb(size), smallest);
    // Units of the last place of the mantissa, rounded to even.
    auto units =
        static_cast<std::int64_t>(std::nearbyint(std::ldexp(size, type.mantissa_bits - exponent)));
    if (units == std::int64_t{2} << type.mantissa_bits) {
        units /= 2;
        ++exponent;
    }
    const std::int64_t one = std::int64_t{1} << type.mantissa_bits;
    const std::int64_t code =
        units < one ? units
                    : (std::int64_t{exponent + type.bias} << type.mantissa_bits) + units - one;
    return signed_code(code > type.largest ? type.infinite : static_cast<int>(code));
}

std::uint8_t to_power(double value) {
    constexpr std::uint8_t nan = 0xff;
    if (!(value >= 0) || std::isinf(value)) return nan;
    if (value == 0) return 0;
    int exponent = std::ilogb(value);
    if (std::ldexp(value, -exponent) >= 1.5) ++exponent;
    if (exponent > power_bias) return nan;
    return static_cast<std::uint8_t>(std::max(exponent + power_bias, 0));
}

}  // namespace

NarrowFloat narrow_float(DType dtype) noexcept {
    switch (dtype) {
        case DType::f8e4m3fn:
            return {4, 3, 7, 0x7e, 0x7f, 0x7f, false};
        case DType::f8e4m3fnuz:
            return {4, 3, 8, 0x7f, 0x80, 0x80, true};
        case DType::f8e5m2:
            return {5, 2, 15, 0x7b, 0x7c, 0x7e, false};
        case DType::f8e5m2fnuz:
            return {5, 2, 16, 0x7f, 0x80, 0x80, true};
        default:  // float4e2m1, which has neither infinity nor NaN
            return {2, 1, 1, 0x7, 0x7, 0x0, false};
    }
}

bool is_narrow_integer(DType dtype) noexcept {
    return dtype >= DType::i4 && dtype <= DType::u2;
}

std::uint8_t low_bits(DType dtype, std::uint8_t value) noexcept {
    const int bits = bits_of(dtype), low = value & ((1 << bits) - 1);
    const bool negative = has_sign(dtype) && (low >> (bits - 1)) != 0;
    return static_cast<std::uint8_t>(negative ? low | (0xff << bits) : low);
}

float from_narrow(DType dtype, std::uint8_t code) noexcept {
    if (is_narrow_integer(dtype)) {
        const std::uint8_t low = low_bits(dtype, code);
        return has_sign(dtype) ? static_cast<float>(static_cast<std::int8_t>(low))
                               : static_cast<float>(low);
    }
    if (dtype == DType::f8e8m0)
        return code == 0xff ? not_a_number : std::ldexp(1.0f, code - power_bias);
    return from_float(narrow_float(dtype), code);
}

std::uint8_t to_narrow(DType dtype, double value) noexcept {
    if (dtype == DType::f8e8m0) return to_power(value);
    if (!is_narrow_integer(dtype)) return to_float(narrow_float(dtype), value);
    constexpr double end = 2147483648.0;  // as a 32-bit integer, whose low bits are taken
    if (std::isnan(value)) return 0;
    const auto whole = static_cast<std::int64_t>(std::clamp(value, -end, end - 1));
    return low_bits(dtype, static_cast<std::uint8_t>(whole & 0xff));
}

}  // namespace dlprim
