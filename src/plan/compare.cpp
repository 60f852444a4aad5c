// SPDX-License-Identifier: MIT
// Inputs of labels, distances between results, and tolerances.
#include "plan/compare.hpp"

#include "graph/operator.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace dlprim {

namespace {

/// Whether both are NaN, or equal.
bool same(double found, double wanted) {
    return std::isnan(wanted) ? std::isnan(found) : wanted == found;
}

}  // namespace

int label_input_of(const Problem& problem) {
    const Operator* const op = OperatorRegistry::instance().find(problem.op);
    if (op == nullptr) return -1;
    std::vector<TensorSpec> specs;
    for (const Operand& input : problem.inputs) specs.push_back({input.shape, input.dtype});
    return op->label_input(problem.attrs, specs).first;
}

double largest_distance(const std::vector<double>& found, const std::vector<double>& wanted) {
    double largest = 0;
    for (std::size_t i = 0; i < found.size(); ++i) {
        if (same(found[i], wanted[i])) continue;
        if (!std::isfinite(wanted[i]) || !std::isfinite(found[i])) return INFINITY;
        largest =
            std::max(largest, std::abs(found[i] - wanted[i]) / std::max(1.0, std::abs(wanted[i])));
    }
    return largest;
}

double result_distance(const std::vector<double>& found, const std::vector<double>& wanted) {
    double error = 0, size = 0;
    for (std::size_t i = 0; i < found.size(); ++i) {
        if (!std::isfinite(wanted[i]) || !std::isfinite(found[i])) {
            if (!same(found[i], wanted[i])) return INFINITY;
            continue;
        }
        error += (found[i] - wanted[i]) * (found[i] - wanted[i]);
        size += wanted[i] * wanted[i];
    }
    return std::sqrt(error / std::max(size, 1e-4 * static_cast<double>(found.size())));
}

double result_tolerance(const Problem& problem, DType output) {
    if (!is_float(output)) return 0;
    bool eleven = problem.precision == Precision::tf32 || problem.precision == Precision::fp16;
    bool eight = problem.precision == Precision::bf16;
    for (const auto* operands : {&problem.inputs, &problem.outputs})
        for (const Operand& operand : *operands) {
            eleven = eleven || operand.dtype == DType::f16;
            eight = eight || operand.dtype == DType::bf16;
        }
    return eight ? 3 * 0x1p-8 : eleven ? 3 * 0x1p-11 : float_result_tolerance;
}

}  // namespace dlprim
