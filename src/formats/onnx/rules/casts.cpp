// SPDX-License-Identifier: MIT
// Casts: between numbers, to narrow types by ONNX's rules for what is out of range, and between
// numbers and strings on the host. The library's Cast makes infinity or NaN of what is too large
// for a float of 8 bits, so that saturation is a bound in front of it.
#include "formats/onnx/letter_case.hpp"
#include "formats/onnx/rules/shared.hpp"
#include "formats/onnx/types.hpp"

#include <charconv>
#include <cmath>
#include <limits>

namespace dlprim::onnx {

namespace {

double largest_value(DType dtype) {
    switch (dtype) {
        case DType::f8e4m3fn:
            return 448;
        case DType::f8e4m3fnuz:
            return 240;
        case DType::f8e5m2:
        case DType::f8e5m2fnuz:
            return 57344;
        default:
            return 0x1p127;  // float8e8m0
    }
}

}  // namespace

Ref saturated(Builder& build, Ref value, DType dtype) {
    if (!is_float(value->spec.dtype)) return value;
    const double most = largest_value(dtype);
    // A half is not beyond the bound where that is no half.
    const Ref wide = value->spec.dtype == DType::f64 ? value : build.cast(value, DType::f32);
    return build.pointwise("y0 = min(max(x0, -p0), p0)", {wide}, {most});
}

namespace {

/// Powers of two: the nearest one is moved up or down where it lies on the other side.
Ref to_power(Call& call, Ref x, bool saturate, const std::string& rounding) {
    call.check(rounding == "up" || rounding == "down" || rounding == "nearest", "round_mode '",
               rounding, "' is unknown");
    Builder& build = call.build;
    x = build.cast(x, DType::f32);
    if (rounding != "nearest") {
        const Ref near =
            build.cast(build.cast(saturated(build, x, DType::f8e8m0), DType::f8e8m0), DType::f32);
        x = build.pointwise(rounding == "up" ? "y0 = isinf(x0) ? x0 : x1 < x0 ? x1 * 2 : x1"
                                             : "y0 = isinf(x0) ? x0 : x1 > x0 ? x1 * 0.5 : x1",
                            {x, near});
    }
    return build.cast(saturate ? saturated(build, x, DType::f8e8m0) : x, DType::f8e8m0);
}

/// The call's first input as `dtype`. `saturate`: what is too large becomes the largest number of a
/// float of 8 bits. `rounding` to powers of two (float8e8m0): "up", "down" or "nearest".
Ref cast_to_narrow(Call& call, DType dtype, bool saturate, const std::string& rounding) {
    Builder& build = call.build;
    const Ref x = call.in(0);
    if (x->spec.dtype == dtype) return x;
    if (dtype == DType::f8e8m0) return to_power(call, x, saturate, rounding);
    const bool is_float8 = dtype >= DType::f8e4m3fn && dtype <= DType::f8e5m2fnuz;
    if (!is_float8 || !saturate) return build.cast(x, dtype);
    const Ref number = is_narrow(x->spec.dtype) ? build.cast(x, DType::f32) : x;
    return build.cast(saturated(build, number, dtype), dtype);
}

template <typename Number>
std::string text_of(Number number) {
    char digits[64];
    const auto end = std::to_chars(digits, digits + sizeof(digits), number).ptr;
    return {digits, end};
}

std::string float_text(double number, DType dtype) {
    if (std::isnan(number)) return "NaN";
    if (std::isinf(number)) return number < 0 ? "-INF" : "INF";
    return dtype == DType::f64 ? text_of(number) : text_of(static_cast<float>(number));
}

/// The whole text as a number.
template <typename Number>
Number number_of(std::string_view text) {
    Number number{};
    const std::string_view digits = text.starts_with('+') ? text.substr(1) : text;
    const char* const end = digits.data() + digits.size();
    const auto read = std::from_chars(digits.data(), end, number);
    if (read.ec != std::errc() || read.ptr != end)
        fail(ErrorKind::invalid_argument, "the text '", text.substr(0, 40), "' is no number");
    return number;
}

double float_of(std::string_view text) {
    const std::string name = to_lower(text.starts_with('+') ? text.substr(1) : text);
    if (name == "nan") return std::nan("");
    if (name == "inf") return std::numeric_limits<double>::infinity();
    if (name == "-inf") return -std::numeric_limits<double>::infinity();
    return number_of<double>(text);
}

/// Input 0, numbers that are or become known, as strings: integers in full, floats by the fewest
/// digits that read back as the same number, "INF", "-INF" and "NaN".
Ref cast_to_strings(Call& call) {
    const Ref value = call.in(0);
    if (value->strings) return value;
    const HostValue known = call.known(0, "numbers that become strings");
    std::vector<std::string> texts;
    if (is_float(known->dtype))
        for (const double number : to_numbers(*known))
            texts.push_back(float_text(number, known->dtype));
    else
        for (const std::int64_t number : to_integers(*known)) texts.push_back(text_of(number));
    return call.build.strings("", known->shape, texts);
}

/// Input 0, strings, as numbers. Throws Error(invalid_argument) for a text that is none.
Ref cast_from_strings(Call& call, DType dtype) {
    const std::vector<std::string> texts = call.known_strings(0, "strings");
    std::vector<double> numbers;
    Ints integers;
    for (const std::string& text : texts) {
        if (is_float(dtype))
            numbers.push_back(float_of(text));
        else
            integers.push_back(number_of<std::int64_t>(text));
    }
    const Shape& shape = call.shape(0);
    return call.build.constant("", is_float(dtype) ? host_numbers(shape, numbers, dtype)
                                                   : host_integers(shape, integers, dtype));
}

void cast_to(Call& call, DType dtype) {
    const bool saturate = call.integer("saturate", 1) != 0;
    const std::string rounding = call.text("round_mode", "up");
    if (call.in(0)->strings) return call.set(0, cast_from_strings(call, dtype));
    call.set(0, is_narrow(dtype) ? cast_to_narrow(call, dtype, saturate, rounding)
                                 : call.build.cast(call.in(0), dtype));
}

void cast(Call& call) {
    const std::int64_t to = call.integer("to", 0);
    if (to == string_type) {
        call.ignore("saturate");
        call.ignore("round_mode");
        return call.set(0, cast_to_strings(call));
    }
    const std::optional<DType> dtype = dtype_of(to);
    if (!dtype) call.unsupported("a cast to ", type_name(to), " is not supported");
    cast_to(call, *dtype);
}

/// The same bits in another type of the same size.
void bit_cast(Call& call) {
    const Ref x = call.in(0);
    const std::int64_t to = call.integer("to", 0);
    const std::optional<DType> dtype = dtype_of(to);
    if (!dtype) call.unsupported("a cast to ", type_name(to), " is not supported");
    call.check(stored_bits(*dtype) == stored_bits(x->spec.dtype), "elements of ",
               name_of(x->spec.dtype), " and ", name_of(*dtype), " are not of the same size");
    if (x->known) {
        auto made = call.build.allocate(x->spec.shape, *dtype);
        made->data = x->known->data;
        return call.set(0, call.build.constant("", std::move(made)));
    }
    call.set(0, call.build.add1("Cast", {x},
                                {{"dtype", std::string(name_of(*dtype))}, {"reinterpret", true}}));
}

void cast_like(Call& call) {
    if (call.in(1)->strings) {
        call.ignore("saturate");
        call.ignore("round_mode");
        return call.set(0, cast_to_strings(call));
    }
    cast_to(call, call.dtype(1));
}

}  // namespace

std::vector<Rule> cast_rules() {
    return {
        {"Cast", 6, cast, Rule::Strings::own},
        {"BitCast", 26, bit_cast},
        {"CastLike", 15, cast_like, Rule::Strings::own},
    };
}

}  // namespace dlprim::onnx
