// SPDX-License-Identifier: MIT
// Convolutions and matrix products of com.microsoft with what ONNX Runtime's optimiser fuses to
// them: an activation, a sum, factors that are transposed.
#include "formats/onnx/rules/shared.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace dlprim::onnx {

namespace {

/// What activation_params lists of an activation: its attributes, in this order.
std::vector<std::string> parameters_of(const std::string& activation) {
    if (activation == "Clip") return {"min", "max"};
    if (activation == "HardSigmoid") return {"alpha", "beta"};
    if (activation == "LeakyRelu" || activation == "Elu" || activation == "ThresholdedRelu")
        return {"alpha"};
    return {};
}

/// A convolution, plus input 3, behind an activation.
void fused_conv(Call& call) {
    std::vector<AnyValue> inputs{call.in(0), call.in(1)};
    if (call.has(2)) inputs.emplace_back(call.in(2));
    const auto made = call.run_rule(
        "Conv", 11, inputs, {"auto_pad", "dilations", "group", "kernel_shape", "pads", "strides"});
    Ref y = made[0]->tensor();
    if (call.has(3)) y = call.build.pointwise("y0 = x0 + x1", {y, call.in(3)}, call.dtype(0));
    const std::string activation = call.text("activation", "");
    const std::vector<double> values = call.numbers("activation_params");
    if (activation.empty()) return call.set(0, y);
    const std::vector<std::string> names = parameters_of(activation);
    call.check(values.size() == names.size(), "activation_params has ", values.size(),
               " entries, activation '", activation, "' takes ", names.size());
    Attributes attributes;
    for (std::size_t i = 0; i < names.size(); ++i) attributes[names[i]] = {values[i]};
    call.set(0, activated(call, y, activation, std::move(attributes)));
}

/// A factor with its first dimension moved behind those of the batch, and the last two exchanged.
Ref turned(Call& call, int input, bool batch, bool matrix) {
    const int rank = call.shape(input).rank();
    Ints order(static_cast<std::size_t>(rank));
    std::iota(order.begin(), order.end(), 0);
    call.check(!batch || rank >= 2, "a factor of shape ", call.shape(input).str(),
               " has no dimensions of a batch");
    if (batch) std::rotate(order.begin(), order.begin() + 1, order.end() - 1);
    if (matrix && rank >= 2) std::swap(order[order.size() - 1], order[order.size() - 2]);
    return call.build.transpose(call.in(input), order);
}

void fused_matmul(Call& call) {
    const double alpha = call.number("alpha", 1);
    const bool a = call.integer("transA", 0) != 0, b = call.integer("transB", 0) != 0,
               batch_a = call.integer("transBatchA", 0) != 0,
               batch_b = call.integer("transBatchB", 0) != 0;
    const DType dtype = call.dtype(0);
    const bool in_float = is_float(dtype) && dtype != DType::f64;
    const bool matrices = call.shape(0).rank() >= 2 && call.shape(1).rank() >= 2;
    if (in_float && matrices && !call.in(1)->known)
        return call.set(
            0, call.build.add1("MatMul",
                               {turned(call, 0, batch_a, false), turned(call, 1, batch_b, false)},
                               {{"transpose_a", a}, {"transpose_b", b}, {"alpha", alpha}}));
    const Ref y =
        call.made_by("MatMul", 13, {turned(call, 0, batch_a, a), turned(call, 1, batch_b, b)})[0];
    call.set(0, alpha == 1 ? y : call.build.pointwise("y0 = x0 * p0", {y}, {alpha}, dtype));
}

void fused_gemm(Call& call) {
    std::vector<AnyValue> inputs{call.in(0), call.in(1)};
    if (call.has(2)) inputs.emplace_back(call.in(2));
    const auto made = call.run_rule("Gemm", 13, inputs, {"alpha", "beta", "transA", "transB"});
    const Ref y = made[0]->tensor();
    const std::string activation = call.text("activation", "");
    Attributes attributes;
    for (const char* const name : {"alpha", "beta", "gamma"}) {
        const std::string fused = cat("activation_", name);
        if (call.given(fused)) attributes[name] = {call.number(fused, 0)};
    }
    call.set(0, activation.empty() ? y : activated(call, y, activation, std::move(attributes)));
}

}  // namespace

std::vector<Rule> fused_product_rules() {
    return {
        {"com.microsoft.FusedConv", 1, fused_conv},
        {"com.microsoft.FusedGemm", 1, fused_gemm},
        {"com.microsoft.FusedMatMul", 1, fused_matmul},
        {"com.microsoft.TransposeMatMul", 1, fused_matmul},
    };
}

}  // namespace dlprim::onnx
