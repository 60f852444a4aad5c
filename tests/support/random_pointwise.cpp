// SPDX-License-Identifier: MIT
// Random problems: elementwise work and reductions: activations, normalisations, losses.
#include "ops/expressions/row.hpp"
#include "support/random_draft.hpp"

#include "base/attrs.hpp"

#include <dlprim/ops.hpp>

#include <algorithm>
#include <limits>

namespace dlprim::testing {

namespace {

/// Two shapes that broadcast to each other.
std::pair<std::vector<std::int64_t>, std::vector<std::int64_t>> broadcast_pair(Dice& dice) {
    std::vector<std::int64_t> a = dice.dims(dice.pick(1, 4), 9), b = a;
    for (std::size_t i = 0; i < a.size(); ++i) {
        if (dice.pick(0, 3) == 0) a[i] = 1;
        if (dice.pick(0, 3) == 0) b[i] = 1;
    }
    while (b.size() > 1 && dice.pick(0, 3) == 0) b.erase(b.begin());
    return {a, b};
}

void reduction(Draft& draft) {
    Dice& dice = draft.dice;
    const std::vector<std::int64_t> shape = dice.dims(dice.pick(1, 4), 11);
    const auto rank = static_cast<std::int64_t>(shape.size());
    draft.options = {{"method", dice.of<std::string>({"sum", "sumsq", "abssum", "mean"})}};
    draft.maybe("keep_dim", dice.coin());
    draft.maybe("output_scale", dice.number(0.5, 2));
    if (dice.coin()) {
        Json dims = Json::array();
        for (std::int64_t d = 0; d < rank; ++d)
            if (dice.coin()) dims.push_back(dice.coin() ? d : d - rank);
        if (dims.empty()) dims.push_back(0);
        draft.options["dims"] = dims;
    } else {
        draft.maybe("start_axis", dice.pick(0, rank - 1));
    }
    draft.input(shape);
}

void pointwise(Draft& draft) {
    Dice& dice = draft.dice;
    const auto [a, b] = broadcast_pair(dice);
    const std::string term =
        dice.of<std::string>({"x0 * x1", "x0 + x1 * p0", "tanh(x0) - x1", "x0 * sigmoid(x1)",
                              "max(x0, x1)", "x0 / (1 + x1 * x1)", "exp(-x0 * x0) * x1"});
    Json axes = Json::array();
    const std::size_t rank = std::max(a.size(), b.size());
    for (std::size_t d = 0; d < rank; ++d)
        if (dice.coin()) axes.push_back(d);
    const std::string method = dice.of<std::string>({"sum", "mean", "sum"});
    std::string code = "t = " + term + "; y0 = ";
    const std::int64_t form = dice.pick(0, 2);
    if (form == 0) code += "t + x0";
    if (form == 1) code += method + axes.dump() + "(t)";
    if (form == 2) code += "t; y1 = " + method + axes.dump() + "(t * t)";
    draft.options = {{"code", code}, {"scalars", Json::array({dice.number(-2, 2)})}};
    draft.input(a);
    draft.input(b);
}

/// Options that their operator declares: one of several choices, or a number near its default.
void draw_options(Draft& draft, const Json& declared) {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    for (const Json& option : declared.at("options")) {
        const auto name = option.at("name").get<std::string>();
        const auto kind = option.at("kind").get<std::string>();
        if (option.contains("choices"))
            draft.maybe(name.c_str(),
                        draft.dice.of(option["choices"].get<std::vector<std::string>>()));
        if (kind == "boolean") draft.maybe(name.c_str(), draft.dice.coin());
        if (kind != "number" || !option.contains("default")) continue;
        const double usual = option["default"].get<double>();
        draft.maybe(name.c_str(),
                    std::clamp(draft.dice.number(usual - 2, usual + 2),
                               option.value("least", -infinity), option.value("most", infinity)));
    }
}

/// An operator that is an expression, by what its row and its options declare.
void expression(Draft& draft, const expressions::Row& row) {
    static const Json declarations = Json::parse(ops::declarations());
    Dice& dice = draft.dice;
    draw_options(draft, declarations.at(std::string(row.type)));
    if (row.activated && dice.pick(0, 2) == 0) draft.options["activation"] = dice.of(activations());
    const auto gradients = row.formula(row.schema().complete({}, row.type)).gradients;
    const bool constant = !gradients.empty() &&
                          std::all_of(gradients.begin(), gradients.end(),
                                      [](const std::string& gradient) { return gradient == "0"; });
    draft.one.gradient = row.differentiable && !constant;
    auto [shape, other] = broadcast_pair(dice);
    if (row.inputs.size() == 1 || row.same_shape) shape = other = dice.dims(dice.pick(1, 4), 9);
    if (row.parameter) {
        const std::int64_t channels = dice.pick(1, 20);
        draft.options[row.parameter->count] = dice.coin() ? 1 : channels;
        shape = features(dice, channels);
    }
    for (std::size_t i = 0; i < row.inputs.size(); ++i) draft.input(i == 0 ? shape : other);
}

Generators norms() {
    using D = Draft&;
    return {
        {"BatchNorm",
         [](D d) {
             d.one.training = d.dice.coin();
             d.maybe("eps", 0.01);
             d.maybe("momentum", 0.25);
             d.maybe("affine", d.dice.coin());
             d.input(features(d.dice, d.dice.pick(1, 20)));
             if (d.one.training)
                 d.one.inputs[0].shape = d.one.inputs[0].shape.with(0, d.dice.pick(4, 9));
             d.one.params = {{}, {}, {}, {}};
             d.one.params[1].fill = "positive";
         }},
        {"LayerNorm",
         [](D d) {
             std::vector<std::int64_t> shape = d.dice.dims(d.dice.pick(2, 4), 7);
             shape.back() = d.dice.pick(5, 40);
             d.options["dims"] = d.dice.pick(1, static_cast<std::int64_t>(shape.size()) - 1);
             d.maybe("eps", 0.01);
             d.maybe("elementwise_affine", d.dice.coin());
             d.input(shape);
         }},
        {"RMSNorm",
         [](D d) {
             std::vector<std::int64_t> shape = d.dice.dims(d.dice.pick(2, 4), 7);
             d.options["dims"] = d.dice.pick(1, static_cast<std::int64_t>(shape.size()) - 1);
             d.maybe("eps", 0.01);
             d.maybe("elementwise_affine", d.dice.coin());
             d.maybe("return_statistics", d.dice.coin());
             d.input(shape);
         }},
        {"GroupNorm",
         [](D d) {
             const std::int64_t groups = d.dice.pick(1, 4);
             d.options["num_groups"] = groups;
             d.maybe("eps", 0.01);
             d.maybe("affine", d.dice.coin());
             d.input({d.dice.pick(1, 3), groups * d.dice.pick(2, 5), d.dice.pick(2, 6),
                      d.dice.pick(1, 6)});
         }},
    };
}

/// dy, x, two statistics of that shape, and perhaps a weight.
void norm_gradient(Draft& d, const std::vector<std::int64_t>& x,
                   const std::vector<std::int64_t>& statistic,
                   const std::vector<std::int64_t>& weight) {
    d.one.gradient = false;
    d.input(x);
    d.input(x);
    d.input(statistic);
    d.input(statistic, "positive");
    if (d.dice.coin()) d.input(weight);
}

Generators norm_gradients() {
    using D = Draft&;
    return {
        {"BatchNormBackward",
         [](D d) {
             d.one.training = d.dice.coin();
             const std::vector<std::int64_t> shape = features(d.dice, d.dice.pick(1, 20));
             norm_gradient(d, shape, {shape[1]}, {shape[1]});
         }},
        {"LayerNormBackward",
         [](D d) {
             const std::int64_t rows = d.dice.pick(1, 9), columns = d.dice.pick(2, 40);
             norm_gradient(d, {rows, columns}, {rows, 1}, {columns});
         }},
        {"RMSNormBackward",
         [](D d) {
             const std::int64_t rows = d.dice.pick(1, 9), columns = d.dice.pick(2, 40);
             d.one.gradient = false;
             for (int i = 0; i < 2; ++i) d.input({rows, columns});
             d.input({rows, 1}, "positive");
             if (d.dice.coin()) d.input({columns});
         }},
        {"GroupNormBackward",
         [](D d) {
             const std::int64_t n = d.dice.pick(1, 3), groups = d.dice.pick(1, 4),
                                channels = groups * d.dice.pick(1, 5);
             d.options["num_groups"] = groups;
             norm_gradient(d, {n, channels, d.dice.pick(2, 6), d.dice.pick(1, 6)}, {n, groups},
                           {channels});
         }},
    };
}

Generators losses() {
    using D = Draft&;
    return {
        {"SoftmaxBackward",
         [](D d) {
             const std::vector<std::int64_t> shape = d.dice.dims(d.dice.pick(2, 4), 12);
             d.one.gradient = false;
             d.options["log"] = d.dice.coin();
             d.maybe("axis", d.dice.pick(0, static_cast<std::int64_t>(shape.size()) - 1));
             d.input(shape);
             d.input(shape);
         }},
        {"NLLLossBackward",
         [](D d) {
             const std::int64_t n = d.dice.pick(1, 9), classes = d.dice.pick(1, 40);
             d.one.gradient = false;
             d.options["classes"] = classes;
             d.maybe("reduce", "sum");
             d.maybe("ignore_index", 0);
             d.input({1});
             d.labels({n}, classes);
             d.input({1}, "positive");
             if (d.dice.coin()) d.input({classes}, "positive");
         }},
        {"Softmax",
         [](D d) {
             const std::vector<std::int64_t> shape = d.dice.dims(d.dice.pick(2, 4), 12);
             d.options["log"] = d.dice.coin();
             d.maybe("axis", d.dice.pick(0, static_cast<std::int64_t>(shape.size()) - 1));
             d.input(shape);
         }},
        {"SoftmaxWithLoss",
         [](D d) {
             const std::int64_t classes = d.dice.pick(1, 40);
             std::vector<std::int64_t> shape = d.dice.dims(d.dice.pick(1, 3), 9);
             d.maybe("ignore_index", d.dice.pick(-1, classes - 1));
             std::vector<std::int64_t> logits = shape;
             logits.insert(logits.begin() + 1, classes);
             d.input(logits);
             d.labels(shape, classes);
         }},
        {"NLLLoss",
         [](D d) {
             const std::int64_t n = d.dice.pick(1, 9), classes = d.dice.pick(1, 40);
             d.maybe("reduce", d.dice.of<std::string>({"mean", "sum", "none"}));
             d.maybe("ignore_index", d.dice.pick(-1, classes - 1));
             d.input({n, classes});
             d.labels({n}, classes);
             if (d.dice.coin()) d.input({classes}, "positive");
         }},
    };
}

}  // namespace

Generators pointwise_generators() {
    using D = Draft&;
    Generators all{
        {"Activation",
         [](D d) {
             d.options["activation"] = d.dice.of(activations());
             d.input(d.dice.dims(d.dice.pick(1, 4), 9));
         }},
        {"ActivationBackward",
         [](D d) {
             d.one.gradient = false;
             d.options["activation"] = d.dice.of<std::string>({"relu", "sigmoid", "tanh", "elu"});
             const std::vector<std::int64_t> shape = d.dice.dims(d.dice.pick(1, 4), 9);
             d.input(shape);
             d.input(shape);
         }},
        {"GatedActivation",
         [](D d) {
             std::vector<std::int64_t> shape = d.dice.dims(d.dice.pick(1, 4), 9);
             const std::int64_t axis = d.dice.pick(0, static_cast<std::int64_t>(shape.size()) - 1);
             shape[static_cast<std::size_t>(axis)] *= 2;
             d.options["axis"] = axis;
             d.maybe("activation", d.dice.of(activations()));
             d.maybe("gate", "second");
             d.input(shape);
         }},
        {"RotaryEmbedding",
         [](D d) {
             const std::int64_t pairs = d.dice.pick(1, 9),
                                rest = d.dice.coin() ? 2 * pairs * d.dice.pick(0, 2)
                                                     : d.dice.pick(0, 3);
             const std::int64_t batch = d.dice.pick(1, 3), heads = d.dice.pick(1, 4),
                                length = d.dice.pick(1, 7), count = d.dice.pick(1, 12);
             const bool picks = d.dice.coin();
             d.maybe("interleaved", d.dice.coin());
             if (rest > 0) d.options["rotary_dim"] = 2 * pairs;
             d.input({batch, heads, length, 2 * pairs + rest});
             for (int i = 0; i < 2; ++i) d.input({picks ? count : length, pairs});
             if (picks) d.labels({batch, 1, length}, count).dtype = DType::i64;
         }},
        {"Reduction", reduction},
        {"Dropout",
         [](D d) {
             d.options = {{"p", d.dice.number(0, 1)}, {"stream", d.dice.pick(0, 1000)}};
             d.one.training = d.dice.coin();
             d.input(d.dice.dims(d.dice.pick(1, 4), 9));
         }},
        {"Pointwise", pointwise},
    };
    all.merge(norms());
    all.merge(norm_gradients());
    all.merge(losses());
    // Those that have a generator above keep it.
    for (const expressions::Row& row : expressions::rows())
        all.emplace(row.type, [&row](D d) { expression(d, row); });
    return all;
}

}  // namespace dlprim::testing
