// SPDX-License-Identifier: MIT
// Normalisations, softmax and dropout.
#include "formats/onnx/call.hpp"

#include <algorithm>

namespace dlprim::onnx {

namespace {

void batch_norm(Call& call) {
    const double eps = call.number("epsilon", 1e-5f), momentum = call.number("momentum", 0.9f);
    call.supports(call.integer("training_mode", 0) == 0 && !call.wants(1),
                  "training_mode is not supported");
    call.supports(call.integer("spatial", 1) == 1, "spatial = 0 is not supported");
    const Shape& x = call.shape(0);
    const bool flat = x.rank() == 1;
    Ref value = flat ? call.build.reshape(call.in(0), {x[0], 1}) : call.in(0);
    value = call.build.add1("BatchNorm", {value}, {{"eps", eps}, {"momentum", 1 - momentum}},
                            {call.in(3), call.in(4), call.in(1), call.in(2)});
    call.set(0, call.build.reshape(value, x));
}

void layer_norm(Call& call) {
    const Shape& x = call.shape(0);
    const int axis = call.axis(call.integer("axis", -1), x.rank());
    const double eps = call.number("epsilon", 1e-5f);
    call.ignore("stash_type");  // statistics are float here
    Ints normalized;
    for (int i = axis; i < x.rank(); ++i) normalized.push_back(x[i]);
    const Shape shape(normalized);
    Attrs options{{"normalized_shape", normalized}, {"eps", eps}, {"bias", call.has(2)}};
    std::vector<Ref> params;
    for (int i = 1; i <= 2; ++i) {
        if (!call.has(i)) continue;
        const Shape& given = call.shape(i);
        bool fits = given.numel() == shape.numel();  // and as numpy lays one over the other
        for (int k = 1; k <= std::min(given.rank(), shape.rank()); ++k)
            fits = fits && given[-k] == shape[-k];
        call.supports(fits, "scale and bias of shape ", given.str(), " for rows of shape ",
                      shape.str(), " are not supported");
        params.push_back(call.build.reshape(call.in(i), shape));
    }
    call.set(0, call.build.add1("LayerNorm", {call.in(0)}, options, params));
}

void rms_norm(Call& call) {
    const Shape& x = call.shape(0);
    const int axis = call.axis(call.integer("axis", -1), x.rank());
    const double eps = call.number("epsilon", 1e-5f);
    call.ignore("stash_type");
    Ints kept = x.to_vector();
    std::vector<std::string> axes;
    for (int i = axis; i < x.rank(); ++i) {
        axes.push_back(cat(i));
        kept[static_cast<std::size_t>(i)] = 1;
    }
    const Ref square =
        call.build.pointwise(cat("y0 = mean[", join(axes, ","), "](x0 * x0)"), {call.in(0)});
    call.set(0, call.build.pointwise(
                    "y0 = x0 * rsqrt(x1 + p0) * x2",
                    {call.in(0), call.build.reshape(square, Shape(kept)), call.in(1)}, {eps}));
}

/// Scale and bias with one number a channel, as GroupNorm has them; given so, or one a group.
Ref per_channel(Call& call, int i, std::int64_t channels) {
    const Ref value = call.in(i);
    const std::int64_t given = value->spec.shape.numel();
    if (given == channels) return value;
    call.check(given > 0 && channels % given == 0, "scale and bias have ", given, " elements for ",
               channels, " channels");
    const Ref column = call.build.reshape(value, {given, 1});
    const Ref wide = call.build.add1(
        "Pointwise", {column},
        {{"code", std::string("y0 = x0")}, {"shape", Ints{given, channels / given}}});
    return call.build.reshape(wide, {channels});
}

void group_norm(Call& call, std::int64_t groups) {
    const Shape& x = call.shape(0);
    call.check(x.rank() >= 3, "an input of shape ", x.str(), " has no [N, C, ...]");
    const double eps = call.number("epsilon", 1e-5f);
    call.ignore("stash_type");
    call.set(0, call.build.add1("GroupNorm", {call.in(0)}, {{"num_groups", groups}, {"eps", eps}},
                                {per_channel(call, 1, x[1]), per_channel(call, 2, x[1])}));
}

void group_normalization(Call& call) {
    group_norm(call, call.integer("num_groups", 0));
}

void instance_normalization(Call& call) {
    group_norm(call, call.shape(0)[1]);
}

/// x / (bias + alpha / size * sum of squares over `size` channels) ^ beta. The mean over channels
/// is an average pool over [N, 1, C, ...].
void local_response_norm(Call& call) {
    const std::int64_t size = call.integer("size", 0);
    const double alpha = call.number("alpha", 0.0001f), beta = call.number("beta", 0.75),
                 bias = call.number("bias", 1);
    const Shape& x = call.shape(0);
    call.check(size >= 1 && size < (1 << 24) && x.rank() >= 3, "size ", size,
               " and an input of shape ", x.str());
    Builder& build = call.build;
    Ref mean = build.pointwise("y0 = x0 * x0", {call.in(0)});
    mean = build.reshape(mean, {x[0], 1, x[1], x.product(2, x.rank())});
    mean = build.add1("Pooling2D", {mean},
                      {{"mode", std::string("avg")},
                       {"kernel", Ints{size, 1}},
                       {"stride", Ints{1, 1}},
                       {"pad", Ints{(size - 1) / 2, 0, size / 2, 0}},
                       {"count_include_pad", true}});
    call.set(0, build.pointwise("y0 = x0 / pow(x1 * p0 + p1, p2)",
                                {call.in(0), build.reshape(mean, x)}, {alpha, bias, beta}));
}

void mean_variance_norm(Call& call) {
    const Shape& x = call.shape(0);
    const Ints axes = call.axes(call.integers("axes", {0, 2, 3}), x.rank());
    std::vector<std::string> names;
    Ints kept = x.to_vector();
    for (const std::int64_t axis : axes) {
        names.push_back(cat(axis));
        kept[static_cast<std::size_t>(axis)] = 1;
    }
    const std::string over = cat("[", join(names, ","), "]");
    Builder& build = call.build;
    const Ref mean =
        build.reshape(build.pointwise(cat("y0 = mean", over, "(x0)"), {call.in(0)}), Shape(kept));
    const Ref variance = build.reshape(
        build.pointwise(cat("y0 = mean", over, "((x0 - x1) * (x0 - x1))"), {call.in(0), mean}),
        Shape(kept));
    call.set(0, build.pointwise("y0 = (x0 - x1) / (sqrt(x2) + p0)", {call.in(0), mean, variance},
                                {1e-9}));
}

void lp_norm(Call& call) {
    const Shape& x = call.shape(0);
    const int axis = call.axis(call.integer("axis", -1), x.rank());
    const std::int64_t p = call.integer("p", 2);
    call.check(p == 1 || p == 2, "p is ", p, ", it is 1 or 2");
    const std::string sum = cat("y0 = sum[", axis, "]", p == 1 ? "(abs(x0))" : "(x0 * x0)");
    const Ref norm = call.build.reshape(call.build.pointwise(sum, {call.in(0)}), x.with(axis, 1));
    call.set(0, call.build.pointwise(
                    p == 1 ? "y0 = x1 == 0 ? 0 : x0 / x1" : "y0 = x1 == 0 ? 0 : x0 / sqrt(x1)",
                    {call.in(0), norm}));
}

void softmax(Call& call, bool log) {
    const Shape& x = call.shape(0);
    const int axis = call.axis(call.integer("axis", -1), x.rank());
    call.set(0, call.build.add1("Softmax", {call.in(0)},
                                {{"axis", static_cast<std::int64_t>(axis)}, {"log", log}}));
}

/// Before opset 13 the dimensions from the axis on are one.
void flat_softmax(Call& call, bool log) {
    const Shape& x = call.shape(0);
    const int axis = call.axis(call.integer("axis", 1), x.rank());
    const bool last = axis == x.rank() - 1;
    Ref value = call.in(0);
    if (!last) value = call.build.reshape(value, {x.product(0, axis), x.product(axis, x.rank())});
    value = call.build.add1("Softmax", {value},
                            {{"axis", static_cast<std::int64_t>(last ? axis : 1)}, {"log", log}});
    call.set(0, call.build.reshape(value, x));
}

/// Dropout changes nothing outside training, and neither does a model that asks for none.
void dropout(Call& call, double ratio) {
    call.ignore("seed");
    call.supports(!call.wants(1), "the mask is not supported");
    call.set(0, ratio > 0 && ratio < 1 && is_float(call.dtype(0))
                    ? call.build.add1("Dropout", {call.in(0)}, {{"p", ratio}})
                    : call.in(0));
}

void dropout_by_input(Call& call) {
    if (call.has(2))
        call.supports(call.known_integers(2, "training_mode") == Ints{0},
                      "training_mode is not supported");
    const std::vector<double> ratio =
        call.has(1) ? call.known_numbers(1, "the ratio's elements") : std::vector<double>{0.5};
    call.check(ratio.size() == 1, "the ratio is no single number");
    dropout(call, ratio[0]);
}

const Rule rules[] = {
    {"BatchNormalization", 7, batch_norm},
    {"LayerNormalization", 17, layer_norm},
    {"RMSNormalization", 23, rms_norm},
    {"GroupNormalization", 18, group_normalization},
    {"InstanceNormalization", 6, instance_normalization},
    {"LRN", 1, local_response_norm},
    {"MeanVarianceNormalization", 9, mean_variance_norm},
    {"LpNormalization", 1, lp_norm},
    {"Softmax", 1, [](Call& call) { flat_softmax(call, false); }},
    {"Softmax", 13, [](Call& call) { softmax(call, false); }},
    {"LogSoftmax", 1, [](Call& call) { flat_softmax(call, true); }},
    {"LogSoftmax", 13, [](Call& call) { softmax(call, true); }},
    {"Dropout", 7, [](Call& call) { dropout(call, call.number("ratio", 0.5)); }},
    {"Dropout", 12, dropout_by_input},
};

}  // namespace

std::span<const Rule> normalization_rules() {
    return rules;
}

}  // namespace dlprim::onnx
