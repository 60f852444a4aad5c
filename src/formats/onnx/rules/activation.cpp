// SPDX-License-Identifier: MIT
// Functions of one variable: activations, and Clip, which is one where its bounds are constant.
#include "formats/onnx/rules/shared.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace dlprim::onnx {

namespace {

void activation(Call& call, const char* function, const Attrs& parameters = {}) {
    Attrs options = parameters;
    options.set("activation", std::string(function));
    call.set(0, call.build.add1("Activation", {call.in(0)}, options));
}

/// A rule for a function without attributes.
Rule plain(std::string_view type, std::int64_t since, const char* function) {
    return {type, since, [function](Call& call) { activation(call, function); }};
}

void relu(Call& call) {
    if (is_float(call.dtype(0))) return activation(call, "relu");
    call.set(0, call.build.pointwise("y0 = max(x0, 0)", {call.in(0)}));
}

void leaky_relu(Call& call) {
    activation(call, "leaky_relu", {{"alpha", call.number("alpha", 0.01f)}});
}

void elu(Call& call) {
    activation(call, "elu", {{"alpha", call.number("alpha", 1)}});
}

void celu(Call& call) {
    activation(call, "celu", {{"alpha", call.number("alpha", 1)}});
}

void selu(Call& call) {
    const double alpha = call.number("alpha", 1.67326319217681884765625),
                 gamma = call.number("gamma", 1.05070102214813232421875);
    call.set(0, call.build.pointwise("y0 = x0 > 0 ? x0 * p1 : p0 * p1 * (exp(x0) - 1)",
                                     {call.in(0)}, {alpha, gamma}));
}

void hard_sigmoid(Call& call) {
    const double alpha = call.number("alpha", 0.2f), beta = call.number("beta", 0.5);
    // Exporters write a sixth with a few digits or with a float's.
    if (std::abs(alpha - 1.0 / 6) < 1e-5 && beta == 0.5) return activation(call, "hardsigmoid");
    call.set(
        0, call.build.pointwise("y0 = min(max(x0 * p0 + p1, 0), 1)", {call.in(0)}, {alpha, beta}));
}

void gelu(Call& call) {
    const std::string approximate = call.text("approximate", "none");
    call.supports(approximate == "none" || approximate == "tanh", "approximate '", approximate,
                  "' is neither none nor tanh");
    activation(call, approximate == "tanh" ? "gelu_tanh" : "gelu");
}

void thresholded_relu(Call& call) {
    call.set(
        0, call.build.pointwise("y0 = x0 > p0 ? x0 : 0", {call.in(0)}, {call.number("alpha", 1)}));
}

void shrink(Call& call) {
    const double lambda = call.number("lambd", 0.5), bias = call.number("bias", 0);
    call.set(0, call.build.pointwise("y0 = x0 < -p0 ? x0 + p1 : (x0 > p0 ? x0 - p1 : 0)",
                                     {call.in(0)}, {lambda, bias}, call.dtype(0)));
}

void swish(Call& call) {
    const double alpha = call.number("alpha", 1);
    if (alpha == 1) return activation(call, "silu");
    call.set(0, call.build.pointwise("y0 = x0 * sigmoid(x0 * p0)", {call.in(0)}, {alpha}));
}

void prelu(Call& call) {
    call.set(0, call.build.pointwise("y0 = x0 >= 0 ? x0 : x0 * x1", {call.in(0), call.in(1)},
                                     call.dtype(0)));
}

/// Bounds that are constant.
void clip_between(Call& call, double low, double high) {
    // A float's own limits bound nothing.
    constexpr double largest = std::numeric_limits<float>::max();
    const bool below = low > -largest, above = high < largest;
    if (!below && !above) return call.set(0, call.in(0));
    if (low == 0 && !above && is_float(call.dtype(0))) return activation(call, "relu");
    // An option cannot be infinite in JSON, so a single bound is an expression.
    if (!is_float(call.dtype(0)) || !below || !above) {
        const char* const code = below && above ? "y0 = min(max(x0, p0), p1)"
                                 : below        ? "y0 = max(x0, p0)"
                                                : "y0 = min(x0, p1)";
        return call.set(
            0, call.build.pointwise(code, {call.in(0)}, {below ? low : 0, above ? high : 0},
                                    call.dtype(0)));
    }
    if (low == 0 && high == 6) return activation(call, "relu6");
    activation(call, "hardtanh", {{"alpha", low}, {"beta", high}});
}

void clip_by_attributes(Call& call) {
    constexpr double none = std::numeric_limits<double>::infinity();
    clip_between(call, call.number("min", -none), call.number("max", none));
}

void clip(Call& call) {
    double bounds[2] = {-std::numeric_limits<double>::infinity(),
                        std::numeric_limits<double>::infinity()};
    bool known = true;
    for (int i = 0; i < 2; ++i) {
        if (!call.has(i + 1)) continue;
        call.check(call.shape(i + 1).numel() == 1, "a bound is no single number");
        if (call.in(i + 1)->known)
            bounds[i] = to_numbers(*call.in(i + 1)->known).front();
        else
            known = false;
    }
    if (known && bounds[0] <= bounds[1]) return clip_between(call, bounds[0], bounds[1]);
    Ref value = call.in(0);
    const DType dtype = value->spec.dtype;
    if (call.has(1)) value = call.build.pointwise("y0 = max(x0, x1)", {value, call.in(1)}, dtype);
    if (call.has(2)) value = call.build.pointwise("y0 = min(x0, x1)", {value, call.in(2)}, dtype);
    call.set(0, value);
}

/// Up to opset 6 a slope of one dimension is one number a channel.
void old_prelu(Call& call) {
    const Shape& x = call.shape(0);
    Ref slope = call.in(1);
    if (slope->spec.shape.rank() == 1 && slope->spec.shape[0] > 1 && x.rank() > 2) {
        Ints sizes(static_cast<std::size_t>(x.rank() - 1), 1);
        sizes[0] = slope->spec.shape[0];
        slope = call.build.reshape(slope, Shape(sizes));
    }
    call.set(0, call.build.pointwise("y0 = x0 >= 0 ? x0 : x0 * x1", {call.in(0), slope}));
}

}  // namespace

Ref activated(Call& call, Ref value, const std::string& name, Attributes attributes) {
    constexpr std::array names{"Celu",      "Clip", "Elu",      "Gelu",           "HardSigmoid",
                               "HardSwish", "Relu", "Selu",     "Sigmoid",        "LeakyRelu",
                               "Softplus",  "Tanh", "Softsign", "ThresholdedRelu"};
    call.supports(std::find(names.begin(), names.end(), name) != names.end(), "activation '", name,
                  "' is not supported");
    // Clip has bounds as attributes up to opset 10.
    return call.made_by(name, name == "Clip" ? 6 : newest_opset, {value}, std::move(attributes))[0];
}

std::vector<Rule> activation_rules() {
    return {
        {"Relu", 1, relu},
        plain("Sigmoid", 1, "sigmoid"),
        plain("Tanh", 1, "tanh"),
        plain("Softplus", 1, "softplus"),
        plain("Softsign", 1, "softsign"),
        plain("HardSwish", 14, "hardswish"),
        plain("Mish", 18, "mish"),
        {"LeakyRelu", 1, leaky_relu},
        {"Elu", 1, elu},
        {"Celu", 12, celu},
        {"Selu", 1, selu},
        {"HardSigmoid", 1, hard_sigmoid},
        {"Gelu", 20, gelu},
        {"ThresholdedRelu", 10, thresholded_relu},
        {"Shrink", 9, shrink},
        {"Swish", 24, swish},
        {"PRelu", 1, old_prelu},
        {"PRelu", 7, prelu},
        {"Clip", 1, clip_by_attributes},
        {"Clip", 11, clip},
    };
}

}  // namespace dlprim::onnx
