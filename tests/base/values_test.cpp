// SPDX-License-Identifier: MIT
// Element types and their conversions, shapes, layouts.
#include "base/layout.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"

#include <dlprim/dtype.hpp>
#include <dlprim/error.hpp>
#include <dlprim/shape.hpp>

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

using namespace dlprim;
using testing::message_of;

namespace {

const DType all_types[] = {DType::f32, DType::f16,     DType::bf16, DType::f64, DType::i8,
                           DType::u8,  DType::i16,     DType::u16,  DType::i32, DType::u32,
                           DType::i64, DType::boolean, DType::u64};
const DType narrow_types[] = {DType::f8e4m3fn, DType::f8e4m3fnuz, DType::f8e5m2, DType::f8e5m2fnuz,
                              DType::f8e8m0,   DType::f4e2m1,     DType::i4,     DType::u4,
                              DType::i2,       DType::u2};

// Converts a double to a type and back.
double through(double value, DType dtype) {
    unsigned char stored[8];
    double back = -1;
    convert(&value, DType::f64, stored, dtype, 1);
    convert(stored, dtype, &back, DType::f64, 1);
    return back;
}

}  // namespace

TEST_CASE("names of element types read back") {
    for (DType dtype : all_types) CHECK(parse_dtype(name_of(dtype)) == dtype);
    for (DType dtype : narrow_types) CHECK(parse_dtype(name_of(dtype)) == dtype);
    CHECK(parse_dtype("float16") == DType::f16);
    CHECK(parse_dtype("int") == DType::i32);
    CHECK(message_of([] { parse_dtype("flot"); }).find("'float'") != std::string::npos);
}

TEST_CASE("integers of 64 bits without a sign are exact") {
    const std::uint64_t values[] = {0, 1, std::uint64_t{1} << 63, ~std::uint64_t{0}};
    std::uint64_t copy[4];
    convert(values, DType::u64, copy, DType::u64, 4);
    CHECK(std::equal(values, values + 4, copy));
    std::int32_t low[4];
    convert(values, DType::u64, low, DType::i32, 4);
    CHECK(low[3] == -1);
    CHECK(through(1e30, DType::u64) == 0x1p64);
    CHECK(through(-5, DType::u64) == 0);
    CHECK(is_integer(DType::u64));
}

TEST_CASE("narrow floats round to the nearest number that they have") {
    const double infinity = std::numeric_limits<double>::infinity();
    struct Row {
        DType dtype;
        double value, back;
    };
    const Row rows[] = {
        {DType::f8e4m3fn, 0.47892547, 0.46875},
        {DType::f8e4m3fn, 448, 448},
        {DType::f8e4m3fn, 464, 448},
        {DType::f8e4m3fn, 0x1p-9, 0x1p-9},
        {DType::f8e4m3fn, 0x1p-10, 0},
        {DType::f8e4m3fn, 1.0625, 1},
        {DType::f8e4m3fn, 1.1875, 1.25},
        {DType::f8e4m3fnuz, 240, 240},
        {DType::f8e4m3fnuz, 0x1p-10, 0x1p-10},
        {DType::f8e5m2, 57344, 57344},
        {DType::f8e5m2, 61440, infinity},
        {DType::f8e5m2, -infinity, -infinity},
        {DType::f8e5m2fnuz, 0x1p-17, 0x1p-17},
        {DType::f8e5m2fnuz, -57344, -57344},
        {DType::f4e2m1, -3.5, -4},
        {DType::f4e2m1, 9, 6},
        {DType::f4e2m1, 0.25, 0},
        {DType::f4e2m1, infinity, 6},
        {DType::f4e2m1, 3e38, 6},
        {DType::f4e2m1, -1e300, -6},
        {DType::f8e5m2, 1e31, infinity},
        {DType::f8e5m2, -1e300, -infinity},
        {DType::f8e8m0, 1.4, 1},
        {DType::f8e8m0, 1.5, 2},
        {DType::f8e8m0, 0, 0x1p-127},
        {DType::f8e8m0, 0x1p127, 0x1p127},
    };
    for (const Row& row : rows) {
        CAPTURE(name_of(row.dtype), row.value);
        CHECK(through(row.value, row.dtype) == row.back);
    }
    for (const DType dtype : {DType::f8e4m3fn, DType::f8e4m3fnuz, DType::f8e5m2fnuz}) {
        CHECK(std::isnan(through(1e6, dtype)));
        CHECK(std::isnan(through(1e38, dtype)));
        CHECK(std::isnan(through(-infinity, dtype)));
    }
    for (const DType dtype :
         {DType::f8e4m3fn, DType::f8e4m3fnuz, DType::f8e5m2, DType::f8e5m2fnuz, DType::f8e8m0})
        CHECK(std::isnan(through(std::nan(""), dtype)));
    CHECK(std::isnan(through(-1, DType::f8e8m0)));
    // As a double it would be 1.5 * 2^61, and round up.
    const std::int64_t below = 3 * (std::int64_t{1} << 60) - 1;
    std::uint8_t power = 0;
    convert(&below, DType::i64, &power, DType::f8e8m0, 1);
    CHECK(power == 127 + 61);
    CHECK(!std::signbit(through(-0.0, DType::f8e4m3fnuz)));
    CHECK(std::signbit(through(-0.0, DType::f8e4m3fn)));
}

TEST_CASE("every code of a narrow type survives its number and back") {
    for (const DType dtype : narrow_types) {
        const int codes = dtype >= DType::i4 ? 1 : dtype == DType::f4e2m1 ? 16 : 256;
        for (int code = 0; code < codes; ++code) {
            const auto stored = static_cast<std::uint8_t>(code);
            double value = 0;
            std::uint8_t back = 0;
            convert(&stored, dtype, &value, DType::f64, 1);
            convert(&value, DType::f64, &back, dtype, 1);
            CAPTURE(name_of(dtype), code);
            if (!std::isnan(value)) CHECK(back == stored);
        }
    }
}

TEST_CASE("narrow integers keep the low bits") {
    CHECK(through(-9, DType::i4) == 7);
    CHECK(through(8, DType::i4) == -8);
    CHECK(through(-9, DType::u4) == 7);
    CHECK(through(2.7, DType::i2) == -2);
    CHECK(through(-1, DType::u2) == 3);
    CHECK(through(1e30, DType::i4) == -1);
    CHECK(!is_integer(DType::i4));
    CHECK(!is_float(DType::f8e5m2));
}

TEST_CASE("every half survives a float and back") {
    for (unsigned bits = 0; bits < 65536; ++bits) {
        const auto half = static_cast<std::uint16_t>(bits);
        const float value = half_to_float(half);
        if (std::isnan(value))
            REQUIRE(std::isnan(half_to_float(float_to_half(value))));
        else
            REQUIRE(float_to_half(value) == half);
    }
}

TEST_CASE("halves round to nearest, ties to even") {
    for (unsigned bits = 0; bits < 0x7bff; ++bits) {
        const float low = half_to_float(static_cast<std::uint16_t>(bits));
        const float high = half_to_float(static_cast<std::uint16_t>(bits + 1));
        const float middle = (low + high) / 2;  // exact in a float
        const unsigned even = bits % 2 == 0 ? bits : bits + 1;
        REQUIRE(float_to_half(middle) == even);
        REQUIRE(float_to_half(std::nextafter(middle, low)) == bits);
        REQUIRE(float_to_half(std::nextafter(middle, high)) == bits + 1);
    }
    CHECK(float_to_half(65519.0f) == 0x7bff);
    CHECK(float_to_half(65520.0f) == 0x7c00);
    CHECK(float_to_half(-1e30f) == 0xfc00);
    CHECK(float_to_half(1e-30f) == 0);
}

TEST_CASE("bfloat16 rounds to nearest, ties to even") {
    CHECK(float_to_bfloat16(1.0f) == 0x3f80);
    CHECK(float_to_bfloat16(1.0f + 0x1p-8f) == 0x3f80);
    CHECK(float_to_bfloat16(1.0f + 0x1p-8f + 0x1p-20f) == 0x3f81);
    CHECK(float_to_bfloat16(1.0f + 3 * 0x1p-8f) == 0x3f82);
    CHECK(
        std::isnan(bfloat16_to_float(float_to_bfloat16(std::numeric_limits<float>::quiet_NaN()))));
    CHECK(std::isinf(bfloat16_to_float(float_to_bfloat16(std::numeric_limits<float>::max()))));
}

namespace {

template <typename T>
std::uint16_t bits16(T value, DType from, DType to) {
    std::uint16_t bits = 0;
    convert(&value, from, &bits, to, 1);
    return bits;
}

}  // namespace

TEST_CASE("wide numbers round once to 16 bits") {
    // A float holds these only rounded, and the float lies half-way between two halves or bfloat16.
    const auto half = [](double value) { return bits16(value, DType::f64, DType::f16); };
    CHECK(half(1 + 0x1p-11) == 0x3c00);
    CHECK(half(1 + 0x1p-11 + 0x1p-40) == 0x3c01);
    CHECK(half(1 + 3 * 0x1p-11 - 0x1p-40) == 0x3c01);
    CHECK(half(-1 - 0x1p-11 - 0x1p-52) == 0xbc01);
    CHECK(half(0x1p-25 + 0x1p-70) == 0x0001);
    CHECK(half(0x1p-25) == 0);
    CHECK(half(1e-300) == 0);
    CHECK(half(65520 - 0x1p-30) == 0x7bff);
    CHECK(half(-1e300) == 0xfc00);
    const auto bfloat = [](double value) { return bits16(value, DType::f64, DType::bf16); };
    CHECK(bfloat(1 + 0x1p-8) == 0x3f80);
    CHECK(bfloat(1 + 0x1p-8 + 0x1p-40) == 0x3f81);
    CHECK(bfloat(1 + 3 * 0x1p-8 - 0x1p-40) == 0x3f81);
    CHECK(bfloat(0x1p-134 + 0x1p-160) == 0x0001);  // subnormal
    CHECK(bfloat(1e300) == 0x7f80);
    CHECK(std::isnan(bfloat16_to_float(bfloat(std::nan("")))));
    // 2^40 + 2^32 is half-way between two bfloat16.
    const std::int64_t tie = (std::int64_t{1} << 40) + (std::int64_t{1} << 32);
    CHECK(bits16(tie, DType::i64, DType::bf16) == 0x5380);
    CHECK(bits16(tie + 1, DType::i64, DType::bf16) == 0x5381);
    CHECK(bits16(-tie - 1, DType::i64, DType::bf16) == 0xd381);
    const std::uint64_t high = (std::uint64_t{1} << 63) + (std::uint64_t{1} << 55);
    CHECK(bits16(high, DType::u64, DType::bf16) == 0x5f00);
    CHECK(bits16(high + 1, DType::u64, DType::bf16) == 0x5f01);
    CHECK(bits16(high - 1, DType::u64, DType::bf16) == 0x5f00);
}

TEST_CASE("conversions between all types keep small integers") {
    for (DType from : all_types)
        for (DType to : all_types) {
            const double value = 1;
            unsigned char a[8], b[8];
            double back = -1;
            convert(&value, DType::f64, a, from, 1);
            convert(a, from, b, to, 1);
            convert(b, to, &back, DType::f64, 1);
            REQUIRE(back == 1);
        }
}

TEST_CASE("floats saturate integers") {
    CHECK(through(300, DType::u8) == 255);
    CHECK(through(-5, DType::u8) == 0);
    CHECK(through(-129.5, DType::i8) == -128);
    CHECK(through(1e30, DType::i32) == 2147483647.0);
    CHECK(through(-1e30, DType::i64) == -0x1p63);
    CHECK(through(1e30, DType::i64) == 0x1p63);
    CHECK(through(std::nan(""), DType::i16) == 0);
    CHECK(through(-2.9, DType::i32) == -2);
    CHECK(through(0.25, DType::boolean) == 1);
    CHECK(through(0, DType::boolean) == 0);
}

TEST_CASE("shapes check what they are made of") {
    const Shape shape{2, 3, 4};
    CHECK(shape.numel() == 24);
    CHECK(shape[-1] == 4);
    CHECK(shape.strides() == std::vector<std::int64_t>{12, 4, 1});
    CHECK(shape.str() == "[2, 3, 4]");
    CHECK(Shape().numel() == 1);
    CHECK(Shape({2, 0, 3}).empty());
    CHECK(shape.with(-1, 7) == Shape{2, 3, 7});
    CHECK(shape.product(1, 3) == 12);
    CHECK_THROWS_AS(Shape({-1}), Error);
    CHECK_THROWS_AS(Shape({1 << 30, 1 << 30, 1 << 30}), Error);
    CHECK_THROWS_AS(Shape({0, std::int64_t{1} << 60, 4}), Error);
    CHECK_THROWS_AS(Shape(std::vector<std::int64_t>(9, 1)), Error);
}

TEST_CASE("broadcast is numpy's") {
    CHECK(broadcast({2, 1, 4}, {3, 1}) == Shape{2, 3, 4});
    CHECK(broadcast({}, {5}) == Shape{5});
    CHECK(broadcast({0, 1}, {1, 3}) == Shape{0, 3});
    const std::string text = message_of([] { broadcast({2, 3}, {4, 3}); });
    CHECK(text.find("[2, 3]") != std::string::npos);
    CHECK(text.find("[4, 3]") != std::string::npos);
}

TEST_CASE("layouts say how memory lies") {
    CHECK(physical_shape({2, 3, 5, 7}, Layout::channels_last()) == Shape{2, 5, 7, 3});
    CHECK(physical_shape({2, 17, 5, 7}, Layout::blocked(16)) == Shape{2, 2, 5, 7, 16});
    CHECK(storage_bytes({2, 17, 5, 7}, DType::f32, Layout::blocked(16)) == 2 * 2 * 35 * 16 * 4);
    CHECK(storage_bytes({3}, DType::f16, Layout::plain()) == 6);
    CHECK(storage_bytes({3}, DType::f16, Layout::packed("x", 100)) == 100);
    CHECK(Layout::blocked(16).str() == "nchw16c");
    CHECK_THROWS_AS(physical_shape({2, 3}, Layout::channels_last()), Error);
}
