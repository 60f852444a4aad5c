// SPDX-License-Identifier: MIT
// The rule of tolerance, and distances.
#include "check/compare.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace dlprim {

namespace {

/// Half a unit in the last place of the format, relative to the value.
double half_unit(Precision format) {
    if (format == Precision::fp32) return 0;
    return format == Precision::bf16 ? 0x1p-8 : 0x1p-11;
}

/// Whether both are NaN, or equal.
bool same(double found, double wanted) {
    return std::isnan(wanted) ? std::isnan(found) : wanted == found;
}

/// The largest distance of an element.
double largest_error(const std::vector<double>& found, const std::vector<double>& wanted) {
    double largest = 0;
    for (std::size_t i = 0; i < found.size(); ++i) {
        if (same(found[i], wanted[i])) continue;
        if (!std::isfinite(wanted[i]) || !std::isfinite(found[i])) return INFINITY;
        largest =
            std::max(largest, std::abs(found[i] - wanted[i]) / std::max(1.0, std::abs(wanted[i])));
    }
    return largest;
}

}  // namespace

double allowed_error(DType result, const Rounding& rounding) {
    if (!is_float(result)) return 0;
    const double rounded = rounding.times * half_unit(rounding.format);
    if (result == DType::f16) return std::max(rounded, 2 * half_unit(Precision::fp16));
    if (result == DType::bf16) return std::max(rounded, 2 * half_unit(Precision::bf16));
    return std::max(rounded, result == DType::f64 ? 1e-12 : 1e-5);
}

double allowed_operator_error(DType result, Precision factors) {
    return result == DType::f32 ? allowed_error(result, {factors, 4}) : allowed_error(result);
}

double allowed_engine_error(const Problem& problem, DType output) {
    Precision format = problem.precision;
    bool doubles = true;
    for (const auto* operands : {&problem.inputs, &problem.outputs})
        for (const Operand& operand : *operands) {
            if (operand.dtype == DType::bf16) format = Precision::bf16;
            if (operand.dtype == DType::f16 && format != Precision::bf16) format = Precision::fp16;
            doubles = doubles && (operand.dtype == DType::f64 || !is_float(operand.dtype));
        }
    const DType computed = doubles || !is_float(output) ? output : DType::f32;
    return allowed_error(computed, {format, 3});
}

double norm(const std::vector<double>& values) {
    double squares = 0;
    for (const double value : values) squares += value * value;
    return std::sqrt(squares);
}

double relative_error(const std::vector<double>& found, const std::vector<double>& wanted,
                      double least) {
    if (found.size() != wanted.size()) return INFINITY;
    double error = 0, size = 0;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
        if (!std::isfinite(wanted[i]) || !std::isfinite(found[i])) {
            if (!same(found[i], wanted[i])) return INFINITY;
            continue;
        }
        error += (found[i] - wanted[i]) * (found[i] - wanted[i]);
        size += wanted[i] * wanted[i];
    }
    return error == 0 ? 0 : std::sqrt(error) / std::max(std::sqrt(size), least);
}

std::vector<std::byte> stored_as(DType dtype, const std::vector<double>& values) {
    std::vector<std::byte> bytes(values.size() * size_of(dtype));
    convert(values.data(), DType::f64, bytes.data(), dtype, values.size());
    return bytes;
}

void round_to(DType dtype, std::vector<double>& values) {
    const std::vector<std::byte> bytes = stored_as(dtype, values);
    convert(bytes.data(), dtype, values.data(), DType::f64, values.size());
}

Excess largest_excess(const Problem& problem, const Results& found, const Results& wanted,
                      bool elementwise) {
    Excess most;
    for (std::size_t k = 0; k < found.size(); ++k) {
        const double least = 0.01 * std::sqrt(static_cast<double>(found[k].size()));
        const double error = elementwise ? largest_error(found[k], wanted[k])
                                         : relative_error(found[k], wanted[k], least);
        const double allowed = allowed_engine_error(problem, problem.outputs[k].dtype);
        const double times = error <= allowed ? 0 : allowed > 0 ? error / allowed : INFINITY;
        if (times <= most.times) continue;
        most = {
            times,
            cat("output ", k, " of shape ", problem.outputs[k].shape.str(), " is off by ", error,
                elementwise ? " for one of the edges of its inputs' types" : " of its size")};
    }
    return most;
}

}  // namespace dlprim
