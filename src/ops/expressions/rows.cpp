// SPDX-License-Identifier: MIT
// The operators that are an expression. Gradients are given where PyTorch's convention at an edge
// differs from the derivative, or where they follow from the result, so that the input need not be
// kept.
#include "ops/expressions/row.hpp"

#include "base/text.hpp"
#include "ops/expressions/activation.hpp"

namespace dlprim::expressions {

namespace {

const Schema& no_options() {
    static const Schema schema;
    return schema;
}

const Schema& hardtanh_options() {
    static const Schema schema{{"min_val", OptionKind::number, -1.0, "smallest output"},
                               {"max_val", OptionKind::number, 1.0, "largest output"}};
    return schema;
}

const Schema& threshold_options() {
    static const Schema schema{{"threshold", OptionKind::number, 0.0,
                                "the output is 1 where the input is greater, else 0"}};
    return schema;
}

const Schema& prelu_options() {
    static const Schema schema{
        {"num_parameters", OptionKind::integer, std::int64_t{1}, "1, or the number of channels"},
        {"init", OptionKind::number, 0.25, "the weight's first value"}};
    return schema;
}

const Schema& elementwise_options() {
    static const Schema schema{
        {"operation", OptionKind::text, std::string("sum"), "sum, prod or max"},
        {"coef1", OptionKind::number, 1.0, "factor of the first tensor"},
        {"coef2", OptionKind::number, 1.0, "factor of the second tensor"},
        {"activation", OptionKind::text, std::string("identity"), "applied to the result"}};
    return schema;
}

const Schema& mse_loss_options() {
    static const Schema schema{{"reduce", OptionKind::text, std::string("mean"),
                                "mean or sum over the elements, or none"}};
    return schema;
}

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
    static const std::vector<std::string> names{"sum", "prod", "max"};
    require(operation == "max", "operation '", operation, "' is not one of sum, prod, max",
            did_you_mean(operation, names));
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

}  // namespace

const std::vector<Row>& rows() {
    static const std::vector<Row> table{
        {.type = "Activation",
         .schema = activation_schema,
         .inputs = {"x"},
         .formula = activation_formula,
         .resolve = resolve_activation,
         .epilogue = activation_epilogue},
        // For programs that keep the result of an activation themselves.
        {.type = "ActivationBackward",
         .schema = activation_schema,
         .inputs = {"dy", "y"},
         .formula = activation_backward_formula,
         .same_shape = true,
         .differentiable = false,
         .resolve = resolve_activation},
        {.type = "Elementwise",
         .schema = elementwise_options,
         .inputs = {"a", "b"},
         .formula = elementwise,
         .activated = true,
         .epilogue = plain_sum},
        {.type = "PReLU",
         .schema = prelu_options,
         .inputs = {"x"},
         .parameter = Parameter{"weight", "num_parameters", "init"},
         .formula =
             [](const Attrs&) {
                 return Formula{"x > 0 ? x : x * weight",
                                {"x > 0 ? dy : dy * weight", "x > 0 ? 0 : dy * x"}};
             },
         .float_types = FloatTypes::wide},
        {.type = "Threshold",
         .schema = threshold_options,
         .inputs = {"x"},
         .formula =
             [](const Attrs&) {
                 return Formula{"x > threshold ? 1 : 0", {"0"}};
             }},
        // Comparisons in place of min and max, so that NaN propagates. Between the limits the
        // result is the input.
        {.type = "Hardtanh",
         .schema = hardtanh_options,
         .inputs = {"x"},
         .formula =
             [](const Attrs&) {
                 return Formula{"x < min_val ? min_val : x > max_val ? max_val : x",
                                {"y > min_val && y < max_val ? dy : 0"}};
             },
         .check = check_limits},
        {.type = "Abs",
         .schema = no_options,
         .inputs = {"x"},
         .formula =
             [](const Attrs&) {
                 return Formula{"abs(x)", {"dy * sign(x)"}};
             },
         .integers = true},
        {.type = "MSELoss",
         .schema = mse_loss_options,
         .inputs = {"a", "b"},
         .formula =
             [](const Attrs&) {
                 return Formula{"(a - b) * (a - b)",
                                {"dy * (a - b) * (2 * factor)", "dy * (b - a) * (2 * factor)"}};
             },
         .float_types = FloatTypes::wide,
         .same_shape = true,
         .reduced = true},
    };
    return table;
}

}  // namespace dlprim::expressions
