// SPDX-License-Identifier: MIT
// Activation: its options, of which some are PyTorch's names of a function's parameters, and its
// expressions.
#include "ops/expressions/activation.hpp"

#include "base/text.hpp"
#include "engine/activations.hpp"

#include <cmath>

namespace dlprim::expressions {

namespace {

/// PyTorch's names of the parameters of functions.
struct OptionNames {
    const char *function, *alpha, *beta;  ///< nullptr if there is no other name
};
constexpr OptionNames option_names[] = {
    {"leaky_relu", "negative_slope", nullptr}, {"hardtanh", "min_val", "max_val"},
    {"softshrink", "lambd", nullptr},          {"hardshrink", "lambd", nullptr},
    {"threshold", "threshold", "value"},       {"softplus", nullptr, "threshold"}};

/// Empty for functions whose derivative cannot be computed from their value alone.
std::string gradient_from_output(const std::string& name, double alpha) {
    if (name == "identity") return "dy";
    if (name == "relu") return "y > 0 ? dy : 0";
    if (name == "relu6") return "y > 0 && y < 6 ? dy : 0";
    if (name == "sigmoid") return "dy * y * (1 - y)";
    if (name == "tanh") return "dy * (1 - y * y)";
    if (name == "leaky_relu" && alpha > 0) return "y > 0 ? dy : dy * alpha";
    if (name == "elu" && alpha > 0) return "y > 0 ? dy : dy * (y + alpha)";
    return {};
}

}  // namespace

Attrs resolve_activation(const Attrs& attrs) {
    const Activation& function = find_activation(attrs.text("activation"));
    // NaN means "not given".
    const auto given = [&](std::string_view name) { return !std::isnan(attrs.number(name)); };
    double alpha = attrs.number("alpha"), beta = attrs.number("beta");
    const bool whole = given("alpha") && given("beta");
    // For softplus, `alpha` is PyTorch's beta and `beta` is PyTorch's threshold. A user who gives
    // alpha means the parameters in that order.
    if (function.name == "softplus" && !given("alpha")) std::swap(alpha, beta);
    for (const char* other :
         {"negative_slope", "min_val", "max_val", "lambd", "threshold", "value"}) {
        if (!given(other)) continue;
        double* into = nullptr;
        for (const OptionNames& names : option_names) {
            if (names.function != function.name) continue;
            if (names.alpha != nullptr && std::string_view(names.alpha) == other) into = &alpha;
            if (names.beta != nullptr && std::string_view(names.beta) == other) into = &beta;
        }
        require(into != nullptr, "activation '", function.name, "' has no option '", other, "'");
        require(std::isnan(*into), "option '", other, "' is ", into == &alpha ? "alpha" : "beta",
                " of ", function.name, ", and both are given");
        *into = attrs.number(other);
    }
    if (whole) return attrs;
    if (std::isnan(alpha)) alpha = function.alpha;
    if (std::isnan(beta)) beta = function.beta;
    return Attrs{{"activation", function.name}, {"alpha", alpha}, {"beta", beta}};
}

Formula activation_formula(const Attrs& attrs) {
    const Activation& function = find_activation(attrs.text("activation"));
    return {function.expression, {gradient_from_output(function.name, attrs.number("alpha"))}};
}

Formula activation_backward_formula(const Attrs& attrs) {
    const std::string& name = attrs.text("activation");
    const std::string text = gradient_from_output(name, attrs.number("alpha"));
    require(
        !text.empty(), "the gradient of ", name,
        " does not follow from its result; backward() of Activation computes it from the input");
    return {text};
}

std::optional<EpilogueStage> activation_epilogue(const Attrs& attrs) {
    EpilogueStage stage;
    stage.kind = EpilogueStage::Kind::activation;
    stage.activation = attrs.text("activation");
    stage.alpha = attrs.number("alpha");
    stage.beta = attrs.number("beta");
    return stage;
}

}  // namespace dlprim::expressions
