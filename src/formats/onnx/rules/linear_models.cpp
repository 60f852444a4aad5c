// SPDX-License-Identifier: MIT
// Operators of the domain ai.onnx.ml that scale features, fill gaps in them or weigh them, as
// exporters of scikit-learn write them.
#include "formats/onnx/rules/classes.hpp"

#include <cmath>

namespace dlprim::onnx {

namespace {

/// The input as rows of floats.
Ref rows_of(Call& call) {
    const Shape& x = call.shape(0);
    call.check(x.rank() == 1 || x.rank() == 2, "an input of shape ", x.str(),
               " has no rows of features");
    const Ref rows = x.rank() == 1 ? call.build.reshape(call.in(0), {1, x[0]}) : call.in(0);
    return call.build.cast(rows, DType::f32);
}

/// One number for all features, or one for each.
Ref by_feature(Call& call, std::string_view name, const std::vector<double>& values,
               std::int64_t features) {
    const std::int64_t count = std::ssize(values);
    call.check(count == 1 || count == features, "attribute '", name, "' has ", count,
               " entries for ", features, " features");
    return call.build.constant("", host_numbers({count}, values, DType::f32));
}

void scaler(Call& call) {
    const Ref x = call.build.cast(call.in(0), DType::f32);
    call.check(x->spec.shape.rank() >= 1, "the input is a single number");
    const std::int64_t features = x->spec.shape[-1];
    const Ref offset = by_feature(call, "offset", call.numbers("offset", {0}), features),
              scale = by_feature(call, "scale", call.numbers("scale", {1}), features);
    call.set(0, call.build.pointwise("y0 = (x0 - x1) * x2", {x, offset, scale}));
}

/// Rows over their norm. A row of zeros stays.
void normalizer(Call& call) {
    const std::string norm = call.text("norm", "MAX");
    const Ref x = rows_of(call);
    Builder& build = call.build;
    Ref size = nullptr;
    if (norm == "MAX")
        size = build.pointwise("y0 = max[1](x0)", {x});
    else if (norm == "L1")
        size = build.pointwise("y0 = sum[1](abs(x0))", {x});
    else if (norm == "L2")
        size = build.pointwise("y0 = sqrt(x0)", {build.pointwise("y0 = sum[1](x0 * x0)", {x})});
    else
        call.unsupported("norm '", norm, "' is not supported");
    const Ref y = build.pointwise("y0 = x1 == 0 ? x0 : x0 / x1", {x, size});
    call.set(0, build.reshape(y, call.shape(0)));
}

/// Other numbers in the place of one that stands for a gap.
void imputer(Call& call) {
    const bool floats = is_float(call.dtype(0));
    const Ref x = call.in(0);
    call.check(x->spec.shape.rank() >= 1, "the input is a single number");
    const std::int64_t features = x->spec.shape[-1];
    const double gap_number = call.number("replaced_value_float", 0);
    const std::int64_t gap_integer = call.integer("replaced_value_int64", 0);
    const std::vector<double> numbers = call.numbers("imputed_value_floats");
    const Ints integers = call.integers("imputed_value_int64s");
    if (floats) {
        const Ref filling = by_feature(call, "imputed_value_floats", numbers, features);
        const bool is_nan = std::isnan(gap_number);
        const std::string code = is_nan ? "y0 = x0 != x0 ? x1 : x0" : "y0 = x0 == p0 ? x1 : x0";
        const std::vector<double> scalars =
            is_nan ? std::vector<double>{} : std::vector{gap_number};
        return call.set(0, call.build.pointwise(code, {x, filling}, scalars, call.dtype(0)));
    }
    call.check(std::ssize(integers) == 1 || std::ssize(integers) == features,
               "attribute 'imputed_value_int64s' has ", integers.size(), " entries for ", features,
               " features");
    const Ref filling = call.build.cast(call.build.integers("", integers), call.dtype(0)),
              gap = call.build.cast(call.build.integers("", {gap_integer}), call.dtype(0));
    call.set(0, call.build.pointwise("y0 = x0 == x2 ? x1 : x0", {x, filling, gap}, call.dtype(0)));
}

/// Scores [rows, count]: the features weighed by `coefficients`, plus `intercepts`.
Ref weighed(Call& call, std::int64_t count) {
    Builder& build = call.build;
    const Ref x = rows_of(call);
    const std::int64_t features = x->spec.shape[1];
    const std::vector<double> weights = call.numbers("coefficients");
    std::vector<double> bias = call.numbers("intercepts");
    if (bias.empty()) bias.resize(static_cast<std::size_t>(count), 0);
    call.check(count >= 1 && features >= 1 && std::ssize(weights) % features == 0 &&
                   std::ssize(weights) / features == count && std::ssize(bias) == count,
               "there are ", weights.size(), " coefficients and ", bias.size(), " intercepts for ",
               features, " features and ", count, " scores");
    const Ref weight = build.constant("", host_numbers({count, features}, weights, DType::f32));
    return build.add1("InnerProduct", {x},
                      {{"inputs", features}, {"outputs", count}, {"bias", true}},
                      {weight, build.constant("", host_numbers({count}, bias, DType::f32))});
}

void linear_regressor(Call& call) {
    call.set(0, transformed_scores(call, weighed(call, call.integer("targets", 1))));
}

void linear_classifier(Call& call) {
    const ClassLabels labels = class_labels(call);
    call.ignore("multi_class");  // what scores mean is said by post_transform
    const auto count = static_cast<std::int64_t>(labels.size());
    call.supports(
        count != 2 || std::ssize(call.numbers("coefficients")) != rows_of(call)->spec.shape[1],
        "one score for two classes is not supported");
    const Ref scores = weighed(call, count);
    set_labels(call, labels, scores);
    if (call.wants(1)) call.set(1, transformed_scores(call, scores));
    call.ignore("post_transform");
}

}  // namespace

std::vector<Rule> linear_model_rules() {
    return {
        {"ai.onnx.ml.Imputer", 1, imputer},
        {"ai.onnx.ml.LinearClassifier", 1, linear_classifier, Rule::Strings::own},
        {"ai.onnx.ml.LinearRegressor", 1, linear_regressor},
        {"ai.onnx.ml.Normalizer", 1, normalizer},
        {"ai.onnx.ml.Scaler", 1, scaler},
    };
}

}  // namespace dlprim::onnx
