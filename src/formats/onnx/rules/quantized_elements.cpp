// SPDX-License-Identifier: MIT
// Operators of com.microsoft on quantised tensors, other than matrix products: functions of
// elements, pooling, softmax, concatenation, and what has images with channels last. Numbers are
// computed in float and rounded as ONNX Runtime does, whose page "Contrib Operators" says more.
#include "formats/onnx/rules/quantization.hpp"
#include "formats/onnx/rules/windows.hpp"

namespace dlprim::onnx {

namespace {

/// The newest operator set of ONNX's own whose rules serve here.
constexpr std::int64_t inner_opset = 19;

/// Of a and b, x0 and x3, each with scale and zero point behind it; those of the result are x6 and
/// x7.
void combine(Call& call, std::string_view rounded) {
    const Quantized a = quantized_input(call, 0), b = quantized_input(call, 3);
    const Ref scale = single_number(call, 6), zero = zero_point(call, 7, a.value->spec.dtype);
    const auto [low, high] = quantized_range(call, zero->spec.dtype);
    call.set(0,
             call.build.pointwise(cat(rounded, "; y0 = min(max(r, p0), p1)"),
                                  {a.value, a.scale, a.zero, b.value, b.scale, b.zero, scale, zero},
                                  {low, high}, zero->spec.dtype));
}

void add(Call& call) {
    combine(call, "a = x1 / x6; b = x4 / x6; r = round(x7 - (a * x2 + b * x5) + x0 * a + x3 * b)");
}

void multiply(Call& call) {
    combine(call, "r = round((x0 - x2) * (x3 - x5) * (x1 * x4 / x6)) + x7");
}

/// A function of x's elements, in the scale and about the zero point of inputs 3 and 4.
void element(Call& call, std::string_view code, const std::vector<double>& scalars) {
    const Quantized x = quantized_input(call, 0);
    const Ref y = call.build.pointwise(code, {dequantized(call.build, x)}, scalars);
    call.set(0, requantized(call, y, single_number(call, 3), zero_point(call, 4, call.dtype(0))));
}

void leaky_relu(Call& call) {
    element(call, "y0 = x0 >= 0 ? x0 : x0 * p0", {call.number("alpha", 0.01f)});
}

void sigmoid(Call& call) {
    element(call, "y0 = sigmoid(x0)", {});
}

/// Where input 0 holds, x of inputs 1 to 3, else that of 4 to 6.
void choose(Call& call) {
    const Quantized x = quantized_input(call, 1), y = quantized_input(call, 4);
    const Ref scale = single_number(call, 7), zero = zero_point(call, 8, call.dtype(1));
    const Ref a = requantized(call, dequantized(call.build, x), scale, zero),
              b = requantized(call, dequantized(call.build, y), scale, zero);
    call.set(0, call.build.pointwise("y0 = x0 ? x1 : x2", {call.in(0), a, b}, zero->spec.dtype));
}

/// Scale and zero point of the result come first.
void concat(Call& call) {
    const Ref scale = single_number(call, 0), zero = single_number(call, 1);
    call.check(call.inputs() >= 5 && call.inputs() % 3 == 2, "there are ", call.inputs(),
               " inputs; each tensor must have a scale and a zero point behind it");
    std::vector<AnyValue> parts;
    for (int i = 2; i < call.inputs(); i += 3) {
        const Quantized x = quantized_input(call, i);
        parts.emplace_back(requantized(call, dequantized(call.build, x), scale, zero));
    }
    call.set(0, *call.run_rule("Concat", inner_opset, std::move(parts), {"axis"}).at(0));
}

/// Shares of 1 / scale, which is rounded down. Before opset 13 the dimensions from the axis on are
/// one.
void softmax(Call& call) {
    const Quantized x = quantized_input(call, 0);
    const Ref scale = single_number(call, 3), zero = zero_point(call, 4, call.dtype(0));
    const Shape& shape = x.value->spec.shape;
    const bool flat = call.integer("opset", 0) < 13;
    const int axis = call.axis(call.integer("axis", flat ? 1 : -1), shape.rank());
    Builder& build = call.build;
    std::string axes = cat(axis);
    for (int i = axis + 1; flat && i < shape.rank(); ++i) axes += cat(",", i);
    const Ref powers = build.pointwise(
        "y0 = exp((x0 - x1) * x2)",
        {x.value, build.pointwise(cat("y0 = max[", axes, "](x0)"), {x.value}), x.scale},
        DType::f32);
    const Ref sum = build.pointwise(cat("y0 = sum[", axes, "](x0)"), {powers});
    const auto [low, high] = quantized_range(call, zero->spec.dtype);
    call.set(0, build.pointwise("y0 = min(max(round(x0 * floor(1 / x2) / x1) + x3, p0), p1)",
                                {powers, sum, scale, zero}, {low, high}, zero->spec.dtype));
}

/// Whether the node's images are [N, ..., C].
bool has_channels_last(Call& call) {
    call.check(call.shape(0).rank() >= 3, "an input of shape ", call.shape(0).str(),
               " holds no images");
    return call.integer("channels_last", 0) != 0;
}

void average_pool(Call& call) {
    const bool last = has_channels_last(call);
    Quantized x = quantized_input(call, 0);
    if (last) x.value = channels_first(call.build, x.value);
    const Ref mean = call.run_rule("AveragePool", inner_opset, {dequantized(call.build, x)},
                                   {"auto_pad", "ceil_mode", "count_include_pad", "kernel_shape",
                                    "pads", "strides"})
                         .at(0)
                         ->tensor();
    const Ref zero = zero_point(call, 4, call.dtype(0));
    const auto [low, high] = quantized_range(call, zero->spec.dtype);
    // The zero point is added before the rounding here.
    const Ref y =
        call.build.pointwise("y0 = min(max(round(x0 / x1 + x2), p0), p1)",
                             {mean, single_number(call, 3), zero}, {low, high}, zero->spec.dtype);
    call.set(0, last ? channels_last(call.build, y) : y);
}

/// The maxima of windows of [N, ..., C].
void max_pool(Call& call) {
    const Ref y =
        call.run_rule("MaxPool", inner_opset, {channels_first(call.build, call.in(0))},
                      {"auto_pad", "ceil_mode", "dilations", "kernel_shape", "pads", "strides"})
            .at(0)
            ->tensor();
    call.set(0, channels_last(call.build, y));
}

void convolution(Call& call) {
    const bool last = has_channels_last(call);
    std::vector<AnyValue> inputs;
    inputs.reserve(static_cast<std::size_t>(call.inputs()));
    for (int i = 0; i < call.inputs(); ++i) inputs.push_back(call.value(i));
    if (last) inputs[0] = channels_first(call.build, call.in(0));
    const Ref y =
        call.run_rule("QLinearConv", inner_opset, std::move(inputs),
                      {"auto_pad", "dilations", "group", "kernel_shape", "pads", "strides"})
            .at(0)
            ->tensor();
    call.set(0, last ? channels_last(call.build, y) : y);
}

void average_all(Call& call) {
    const bool last = has_channels_last(call);
    const Quantized x = quantized_input(call, 0);
    const Shape& shape = x.value->spec.shape;
    call.check(!shape.empty(), "an input of shape ", shape.str(), " holds no images");
    std::vector<std::string> axes;
    std::int64_t elements = 1;
    for (int i = 1; i < shape.rank(); ++i) {
        if (i == (last ? shape.rank() - 1 : 1)) continue;
        axes.push_back(cat(i));
        elements *= shape[i];
    }
    const Ref sum = call.build.pointwise(cat("y0 = sum[", join(axes, ","), "](x0 - x1)"),
                                         {x.value, x.zero}, DType::i32);
    const Ref zero = zero_point(call, 4, call.dtype(0));
    const auto [low, high] = quantized_range(call, zero->spec.dtype);
    call.set(0, call.build.pointwise("y0 = min(max(round(x0 * (x1 / (x2 * p2))) + x3, p0), p1)",
                                     {sum, x.scale, single_number(call, 3), zero},
                                     {low, high, static_cast<double>(elements)}, zero->spec.dtype));
}

}  // namespace

std::vector<Rule> quantized_element_rules() {
    return {
        {"com.microsoft.QLinearAdd", 1, add},
        {"com.microsoft.QLinearMul", 1, multiply},
        {"com.microsoft.QLinearLeakyRelu", 1, leaky_relu},
        {"com.microsoft.QLinearSigmoid", 1, sigmoid},
        {"com.microsoft.QLinearWhere", 1, choose},
        {"com.microsoft.QLinearConcat", 1, concat},
        {"com.microsoft.QLinearSoftmax", 1, softmax},
        {"com.microsoft.NhwcMaxPool", 1, max_pool},
        {"com.microsoft.QLinearAveragePool", 1, average_pool},
        {"com.microsoft.QLinearConv", 1, convolution},
        {"com.microsoft.QLinearGlobalAveragePool", 1, average_all},
    };
}

}  // namespace dlprim::onnx
