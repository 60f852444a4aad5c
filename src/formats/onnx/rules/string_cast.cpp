// SPDX-License-Identifier: MIT
// Numbers as strings and back; see string_cast.hpp.
#include "formats/onnx/rules/string_cast.hpp"

#include "formats/onnx/letter_case.hpp"

#include <charconv>
#include <cmath>
#include <limits>

namespace dlprim::onnx {

namespace {

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

}  // namespace

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

}  // namespace dlprim::onnx
