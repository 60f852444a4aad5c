// SPDX-License-Identifier: MIT
// The GELU family of com.microsoft, most of it behind a bias, and sums with a bias.
#include "formats/onnx/call.hpp"

namespace dlprim::onnx {

namespace {

/// Input 0 plus the other inputs of these numbers that the node has.
Ref sum_of_inputs(Call& call, const std::vector<int>& others) {
    std::vector<Ref> inputs{call.in(0)};
    std::string code = "y0 = x0";
    for (const int i : others) {
        if (!call.has(i)) continue;
        code += cat(" + x", inputs.size());
        inputs.push_back(call.in(i));
    }
    if (inputs.size() == 1) return inputs[0];
    return call.build.pointwise(code, inputs, call.dtype(0));
}

Ref activation(Call& call, Ref x, const char* name) {
    return call.build.add1("Activation", {x}, {{"activation", std::string(name)}});
}

void biased_gelu(Call& call) {
    call.set(0, activation(call, sum_of_inputs(call, {1}), "gelu"));
}

void fast_gelu(Call& call) {
    call.set(0, activation(call, sum_of_inputs(call, {1}), "gelu_tanh"));
}

void quick_gelu(Call& call) {
    call.set(0, call.build.pointwise("y0 = x0 * sigmoid(x0 * p0)", {call.in(0)},
                                     {call.number("alpha", 1.702f)}, call.dtype(0)));
}

/// The first half of the features times GELU of the second.
void bias_split_gelu(Call& call) {
    const Ref x = sum_of_inputs(call, {1});
    const int last = x->spec.shape.rank() - 1;
    call.check(last >= 0 && x->spec.shape[last] % 2 == 0, "an input of shape ", x->spec.shape.str(),
               " has no even number of features");
    const std::int64_t half = x->spec.shape[last] / 2;
    const Ref gate = activation(call, call.build.slice(x, last, half, 2 * half), "gelu");
    call.set(0, call.build.pointwise("y0 = x0 * x1", {call.build.slice(x, last, 0, half), gate},
                                     call.dtype(0)));
}

void bias_add(Call& call) {
    call.set(0, sum_of_inputs(call, {1, 2}));
}

/// Dropout of the sum with the bias, plus input 2.
void bias_dropout(Call& call) {
    call.supports(!call.wants(1), "the mask of BiasDropout is not supported");
    std::vector<AnyValue> inputs{sum_of_inputs(call, {1})};
    for (int i = 3; i < call.inputs(); ++i) inputs.push_back(call.value(i));
    const Ref y = call.run_rule("Dropout", 13, inputs, {"seed"})[0]->tensor();
    call.set(
        0, call.has(2) ? call.build.pointwise("y0 = x0 + x1", {y, call.in(2)}, call.dtype(0)) : y);
}

}  // namespace

std::vector<Rule> biased_activation_rules() {
    return {
        {"com.microsoft.BiasAdd", 1, bias_add},
        {"com.microsoft.BiasDropout", 1, bias_dropout},
        {"com.microsoft.BiasGelu", 1, biased_gelu},
        {"com.microsoft.BiasSplitGelu", 1, bias_split_gelu},
        {"com.microsoft.FastGelu", 1, fast_gelu},
        {"com.microsoft.Gelu", 1, biased_gelu},
        {"com.microsoft.QuickGelu", 1, quick_gelu},
    };
}

}  // namespace dlprim::onnx
