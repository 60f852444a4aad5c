// SPDX-License-Identifier: MIT
// Comparison of values; see onnx_compare.hpp.
#include "onnx_compare.hpp"

#include <dlprim/dtype.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

namespace dlprim::tools {

namespace {

constexpr double relative = 1e-3, absolute = 1e-7, relative_bfloat16 = 1.0 / 64;

std::vector<double> numbers(const HostTensor& tensor) {
    std::vector<double> result(static_cast<std::size_t>(tensor.shape.numel()));
    convert(tensor.data.data(), tensor.dtype, result.data(), DType::f64, result.size());
    return result;
}

bool agree(double given, double expected, double tolerance) {
    if (std::isnan(given) || std::isnan(expected)) return std::isnan(given) == std::isnan(expected);
    if (std::isinf(given) || std::isinf(expected)) return given == expected;
    return std::abs(given - expected) <= absolute + tolerance * std::abs(expected);
}

std::string text(double value) {
    char buffer[32];
    std::snprintf(buffer, sizeof(buffer), "%.7g", value);
    return buffer;
}

std::string compare_numbers(const std::vector<double>& given, const std::vector<double>& expected,
                            double tolerance) {
    std::size_t wrong = 0, first = 0;
    for (std::size_t i = 0; i < expected.size(); ++i) {
        if (agree(given[i], expected[i], tolerance)) continue;
        if (wrong++ == 0) first = i;
    }
    if (wrong == 0) return {};
    return std::to_string(wrong) + " of " + std::to_string(expected.size()) +
           " elements differ, the first at " + std::to_string(first) + " is " + text(given[first]) +
           ", expected " + text(expected[first]);
}

std::string differ(const ONNXValue& given, const ONNXValue& expected) {
    return "is " + given.str() + ", expected " + expected.str();
}

std::string compare_tensors(const ONNXValue& given, const ONNXValue& expected) {
    const HostTensor &a = given.tensor(), &b = expected.tensor();
    if (a.dtype != b.dtype || a.shape != b.shape) return differ(given, expected);
    return compare_numbers(numbers(a), numbers(b),
                           a.dtype == DType::bf16 ? relative_bfloat16 : relative);
}

std::string compare_strings(const ONNXValue& given, const ONNXValue& expected) {
    const ONNXStrings &a = given.strings(), &b = expected.strings();
    if (a.shape != b.shape) return differ(given, expected);
    const auto [x, y] = std::mismatch(a.values.begin(), a.values.end(), b.values.begin());
    if (x == a.values.end()) return {};
    return "element " + std::to_string(x - a.values.begin()) + " is '" + *x + "', expected '" + *y +
           "'";
}

std::string compare_sequences(const ONNXValue& given, const ONNXValue& expected) {
    const ONNXValue::Sequence &a = given.sequence(), &b = expected.sequence();
    if (a.size() != b.size()) return differ(given, expected);
    for (std::size_t i = 0; i < b.size(); ++i) {
        const std::string found = difference(a[i], b[i]);
        if (!found.empty()) return "element " + std::to_string(i) + ": " + found;
    }
    return {};
}

}  // namespace

std::string difference(const ONNXValue& given, const ONNXValue& expected) {
    if (given.kind() != expected.kind()) return differ(given, expected);
    switch (given.kind()) {
        case ONNXValue::Kind::tensor:
            return compare_tensors(given, expected);
        case ONNXValue::Kind::strings:
            return compare_strings(given, expected);
        case ONNXValue::Kind::sequence:
            return compare_sequences(given, expected);
        case ONNXValue::Kind::maps:
            if (given.maps().texts != expected.maps().texts ||
                given.maps().numbers != expected.maps().numbers)
                return "maps have other keys";
            return compare_tensors(ONNXValue(given.maps().values),
                                   ONNXValue(expected.maps().values));
        case ONNXValue::Kind::none:
            break;
    }
    return {};
}

}  // namespace dlprim::tools
