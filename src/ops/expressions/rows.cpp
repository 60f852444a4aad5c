// SPDX-License-Identifier: MIT
// The operators that are an expression. Gradients are given where PyTorch's convention at an edge
// differs from the derivative, or where they follow from the result, so that the input need not be
// kept.
#include "ops/expressions/row.hpp"

#include "base/schema.hpp"
#include "base/text.hpp"
#include "ops/expressions/activation.hpp"

#include <dlprim/op_options.hpp>

namespace dlprim::expressions {

namespace {

void check_limits(const Attrs& attrs) {
    require(attrs.number("min_val") <= attrs.number("max_val"), "min_val ", attrs.number("min_val"),
            " is greater than max_val ", attrs.number("max_val"));
}

bool is_plain(const Attrs& attrs) {
    return attrs.number("coef1") == 1 && attrs.number("coef2") == 1;
}

Formula elementwise(const Attrs& attrs) {
    // A factor of 1 is left out, so that the common cases need no scalars.
    const bool one1 = attrs.number("coef1") == 1, one2 = attrs.number("coef2") == 1;
    const std::string a = one1 ? "a" : "a * coef1", b = one2 ? "b" : "b * coef2";
    const std::string& operation = attrs.text("operation");
    if (operation == "sum")
        return {a + " + " + b, {one1 ? "dy" : "dy * coef1", one2 ? "dy" : "dy * coef2"}};
    if (operation == "prod") {
        const double product = attrs.number("coef1") * attrs.number("coef2");
        const std::string by = product == 1 ? "" : " * product";
        return {a + " * (" + b + ")", {"dy * b" + by, "dy * a" + by}, {{"product", product}}};
    }
    // At ties each input gets half of the gradient, as in torch.maximum.
    return {"max(" + a + ", " + b + ")",
            {"a * coef1 > b * coef2 ? dy * coef1 : a * coef1 == b * coef2 ? dy * coef1 * 0.5 : 0",
             "b * coef2 > a * coef1 ? dy * coef2 : b * coef2 == a * coef1 ? dy * coef2 * 0.5 : 0"}};
}

std::optional<EpilogueStage> plain_sum(const Attrs& attrs) {
    if (attrs.text("operation") != "sum" || !is_plain(attrs)) return std::nullopt;
    EpilogueStage stage;
    stage.kind = EpilogueStage::Kind::add;
    return stage;
}

void check_delta(const Attrs& attrs) {
    require(attrs.number("delta") > 0, "delta must be greater than 0, not ", attrs.number("delta"));
}

}  // namespace

const std::vector<Row>& rows() {
    static const std::vector<Row> table{
        {.type = ops::Activation::type,
         .schema = schema_of<ops::Activation>,
         .inputs = {"x"},
         .formula = activation_formula,
         .resolve = resolve_activation,
         .epilogue = activation_epilogue},
        // For programs that keep the result of an activation themselves.
        {.type = ops::ActivationBackward::type,
         .schema = schema_of<ops::ActivationBackward>,
         .inputs = {"dy", "y"},
         .formula = activation_backward_formula,
         .same_shape = true,
         .differentiable = false,
         .resolve = resolve_activation},
        {.type = ops::Elementwise::type,
         .schema = schema_of<ops::Elementwise>,
         .inputs = {"a", "b"},
         .formula = elementwise,
         .activated = true,
         .epilogue = plain_sum},
        {.type = ops::PReLU::type,
         .schema = schema_of<ops::PReLU>,
         .inputs = {"x"},
         .parameter = Parameter{"weight", "num_parameters", "init"},
         .formula =
             [](const Attrs&) {
                 return Formula{"x > 0 ? x : x * weight",
                                {"x > 0 ? dy : dy * weight", "x > 0 ? 0 : dy * x"}};
             },
         .float_types = FloatTypes::wide},
        {.type = ops::Threshold::type,
         .schema = schema_of<ops::Threshold>,
         .inputs = {"x"},
         .formula =
             [](const Attrs&) {
                 return Formula{"x > threshold ? 1 : 0", {"0"}};
             }},
        // Comparisons in place of min and max, so that NaN propagates. Between the limits the
        // result is the input.
        {.type = ops::Hardtanh::type,
         .schema = schema_of<ops::Hardtanh>,
         .inputs = {"x"},
         .formula =
             [](const Attrs&) {
                 return Formula{"x < min_val ? min_val : x > max_val ? max_val : x",
                                {"y > min_val && y < max_val ? dy : 0"}};
             },
         .check = check_limits},
        {.type = ops::Abs::type,
         .schema = schema_of<ops::Abs>,
         .inputs = {"x"},
         .formula =
             [](const Attrs&) {
                 return Formula{"abs(x)", {"dy * sign(x)"}};
             },
         .integers = true},
        {.type = ops::MSELoss::type,
         .schema = schema_of<ops::MSELoss>,
         .inputs = {"a", "b"},
         .formula =
             [](const Attrs&) {
                 return Formula{"(a - b) * (a - b)",
                                {"dy * (a - b) * (2 * factor)", "dy * (b - a) * (2 * factor)"}};
             },
         .float_types = FloatTypes::wide,
         .same_shape = true,
         .reduced = true},
        {.type = ops::HuberLoss::type,
         .schema = schema_of<ops::HuberLoss>,
         .inputs = {"a", "b"},
         .formula =
             [](const Attrs&) {
                 return Formula{
                     "abs(a - b) <= delta ? 0.5 * (a - b) * (a - b)"
                     " : delta * (abs(a - b) - 0.5 * delta)",
                     {"dy * min(max(a - b, -delta), delta) * factor",
                      "dy * min(max(b - a, -delta), delta) * factor"}};
             },
         .float_types = FloatTypes::wide,
         .same_shape = true,
         .reduced = true,
         .check = check_delta},
    };
    return table;
}

}  // namespace dlprim::expressions
