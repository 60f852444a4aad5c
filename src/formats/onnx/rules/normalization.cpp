// SPDX-License-Identifier: MIT
// Normalisations, softmax and dropout.
#include "formats/onnx/rules/shared.hpp"

#include <algorithm>

namespace dlprim::onnx {

namespace {

/// Sums over all dimensions but the second, as a program has them: "[0,2,3]".
std::string all_but_channels(const Shape& x) {
    std::vector<std::string> axes;
    for (int i = 0; i < x.rank(); ++i)
        if (i != 1) axes.push_back(cat(i));
    return cat("[", join(axes, ","), "]");
}

/// Mean and variance over the axes in brackets, which stay with size 1.
std::pair<Ref, Ref> moments(Builder& build, Ref x, const std::string& axes) {
    const Ref mean = build.pointwise(cat("y0 = mean", axes, "(x0)"), {x});
    return {mean, build.pointwise(cat("y0 = mean", axes, "((x0 - x1) * (x0 - x1))"), {x, mean})};
}

/// By the batch's own mean and variance, which running ones take in.
void training_batch_norm(Call& call, double eps, double momentum) {
    const Shape& x = call.shape(0);
    call.check(x.rank() >= 2, "an input of shape ", x.str(), " has no channels");
    Builder& build = call.build;
    const std::pair<Ref, Ref> both = moments(build, call.in(0), all_but_channels(x));
    const Ref mean = both.first, variance = both.second;
    const auto channels = [&](Ref value) { return build.reshape(value, mean->spec.shape); };
    call.set(
        0, build.pointwise("y0 = (x0 - x1) * rsqrt(x2 + p0) * x3 + x4",
                           {call.in(0), mean, variance, channels(call.in(1)), channels(call.in(2))},
                           {eps}));
    for (int i = 0; i < 2; ++i)
        call.set(i + 1, build.pointwise("y0 = x0 * p0 + x1 * p1",
                                        {call.in(i + 3), build.reshape(i == 0 ? mean : variance,
                                                                       call.shape(i + 3))},
                                        {momentum, 1 - momentum}));
}

void batch_norm(Call& call) {
    const double eps = call.number("epsilon", 1e-5f), momentum = call.number("momentum", 0.9f);
    if (call.version() < 7)
        call.supports(call.integer("is_test", 0) != 0, "is_test = 0 is not supported");
    call.supports(call.integer("spatial", 1) == 1, "spatial = 0 is not supported");
    if (call.integer("training_mode", 0) != 0) return training_batch_norm(call, eps, momentum);
    call.supports(!call.wants(1), "outputs of training are not supported before opset 14");
    const Shape& x = call.shape(0);
    const bool flat = x.rank() == 1;
    Ref value = flat ? call.build.reshape(call.in(0), {x[0], 1}) : call.in(0);
    value = call.build.add1("BatchNorm", {value}, {{"eps", eps}, {"momentum", 1 - momentum}},
                            {call.in(3), call.in(4), call.in(1), call.in(2)});
    call.set(0, call.build.reshape(value, x));
}

/// The sizes from an axis on.
Ints rows_from(const Shape& x, int axis) {
    return Ints(x.dims().begin() + axis, x.dims().end());
}

/// Whether numpy lays a scale over these rows element by element.
bool fits_rows(const Shape& given, const Shape& rows) {
    bool fits = given.numel() == rows.numel();
    for (int k = 1; k <= std::min(given.rank(), rows.rank()); ++k)
        fits = fits && given[-k] == rows[-k];
    return fits;
}

void layer_norm(Call& call) {
    const Shape& x = call.shape(0);
    const int axis = call.axis(call.integer("axis", -1), x.rank());
    const double eps = call.number("epsilon", 1e-5f);
    call.ignore("stash_type");  // statistics are float here
    const Ints normalized = rows_from(x, axis);
    const Shape shape(normalized);
    const bool more = call.wants(1) || call.wants(2);
    const Attrs options{{"normalized_shape", normalized},
                        {"eps", eps},
                        {"bias", call.has(2)},
                        {"return_statistics", more}};
    std::vector<Ref> params;
    for (int i = 1; i <= 2; ++i) {
        if (!call.has(i)) continue;
        const Shape& given = call.shape(i);
        call.supports(fits_rows(given, shape), "scale and bias of shape ", given.str(),
                      " for rows of shape ", shape.str(), " are not supported");
        params.push_back(call.build.reshape(call.in(i), shape));
    }
    const std::vector<Ref> made = call.build.add("LayerNorm", {call.in(0)}, options, params);
    for (int i = 0; i < std::ssize(made); ++i) call.set(i, made[static_cast<std::size_t>(i)]);
}

/// Output 1 is SimplifiedLayerNormalization's: 1 / sqrt(mean of squares + epsilon).
void rms_norm(Call& call) {
    const Shape& x = call.shape(0);
    const int axis = call.axis(call.integer("axis", -1), x.rank());
    call.ignore("stash_type");
    const Ints normalized = rows_from(x, axis);
    const Shape rows(normalized);
    const Ref scale = call.in(1);
    const bool fits = fits_rows(scale->spec.shape, rows) && scale->spec.dtype == call.dtype(0);
    std::vector<Ref> params;
    if (fits) params.push_back(call.build.reshape(scale, rows));
    const std::vector<Ref> made = call.build.add("RMSNorm", {call.in(0)},
                                                 {{"normalized_shape", normalized},
                                                  {"eps", call.number("epsilon", 1e-5f)},
                                                  {"elementwise_affine", fits},
                                                  {"return_statistics", call.wants(1)}},
                                                 params);
    call.set(0, fits ? made[0] : call.build.pointwise("y0 = x0 * x1", {made[0], scale}));
    if (call.wants(1)) call.set(1, made[1]);
}

/// Scale and bias with one number a channel, as GroupNorm has them; given so, or one a group.
Ref per_channel(Call& call, int i, std::int64_t channels) {
    const Ref value = call.in(i);
    const std::int64_t given = value->spec.shape.numel();
    if (given == channels) return value;
    call.check(given > 0 && channels % given == 0, "scale and bias have ", given, " elements for ",
               channels, " channels");
    const Ref column = call.build.reshape(value, {given, 1});
    const Ref wide = call.build.pointwise_of({given, channels / given}, "y0 = x0", {column});
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
    mean = build.add1("Pooling", {mean},
                      {{"mode", "avg"},
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
    call.set(0, call.build.add1("Softmax", {call.in(0)}, {{"axis", axis}, {"log", log}}));
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
    if (call.version() < 7) call.ignore("is_test");
    if (call.wants(1)) {  // nothing is dropped
        constexpr std::int64_t largest_mask = 1 << 24;
        const Shape& x = call.shape(0);
        call.supports(x.numel() <= largest_mask, "a mask of shape ", x.str(), " is too large");
        auto mask = std::make_shared<HostTensor>();
        mask->shape = x;
        mask->dtype = DType::boolean;
        mask->data.assign(static_cast<std::size_t>(x.numel()), std::byte{1});
        call.set(1, call.build.cast(call.build.constant("", std::move(mask)),
                                    call.version() < 10 ? call.dtype(0) : DType::boolean));
    }
    call.set(0, ratio > 0 && ratio < 1 && is_float(call.dtype(0))
                    ? call.build.add1("Dropout", {call.in(0)}, {{"p", ratio}})
                    : call.in(0));
}

void dropout_by_input(Call& call) {
    if (call.has(2) && call.known_integers(2, "training_mode") != Ints{0}) {
        const Ref ratio =
            call.has(1) ? call.in(1) : call.build.constant("", host_numbers({}, {0.5}, DType::f32));
        if (ratio->known && to_numbers(*ratio->known) == std::vector<double>{0})
            return dropout(call, 0);
        const std::vector<Ref> made = random_dropout(call, call.in(0), ratio);
        call.set(0, made[0]);
        call.set(1, made[1]);
        return;
    }
    const std::vector<double> ratio =
        call.has(1) ? call.known_numbers(1, "the ratio's elements") : std::vector<double>{0.5};
    call.check(ratio.size() == 1, "the ratio is no single number");
    dropout(call, ratio[0]);
}

}  // namespace

std::vector<Rule> normalization_rules() {
    return {
        {"BatchNormalization", 1, batch_norm},
        {"LayerNormalization", 17, layer_norm},
        {"RMSNormalization", 23, rms_norm},
        {"SimplifiedLayerNormalization", 1, rms_norm},
        {"com.microsoft.SimplifiedLayerNormalization", 1, rms_norm},
        {"GroupNormalization", 18, group_normalization},
        {"InstanceNormalization", 1, instance_normalization},
        {"LRN", 1, local_response_norm},
        {"MeanVarianceNormalization", 9, mean_variance_norm},
        {"LpNormalization", 1, lp_norm},
        {"Softmax", 1, [](Call& call) { flat_softmax(call, false); }},
        {"Softmax", 13, [](Call& call) { softmax(call, false); }},
        {"LogSoftmax", 1, [](Call& call) { flat_softmax(call, true); }},
        {"LogSoftmax", 13, [](Call& call) { softmax(call, true); }},
        {"Dropout", 1, [](Call& call) { dropout(call, call.number("ratio", 0.5)); }},
        {"Dropout", 12, dropout_by_input},
    };
}

}  // namespace dlprim::onnx
