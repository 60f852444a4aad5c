// SPDX-License-Identifier: MIT
// Options of Activation: converts PyTorch's names to alpha and beta.
#include "ops/activation/options.hpp"

#include "base/text.hpp"

#include <cmath>
#include <string_view>
#include <utility>

namespace dlprim::activation {

Options::Options(const Attrs& attrs) : function(&find_activation(attrs.text("activation"))) {
    // NaN means "not given".
    const auto given = [&](std::string_view name) { return !std::isnan(attrs.number(name)); };
    alpha = attrs.number("alpha");
    beta = attrs.number("beta");
    resolved = given("alpha") && given("beta");
    // For softplus, `alpha` is PyTorch's beta and `beta` is PyTorch's threshold. A user who gives
    // alpha means the parameters in that order.
    if (function->name == "softplus" && !given("alpha")) std::swap(alpha, beta);
    for (const char* other :
         {"negative_slope", "min_val", "max_val", "lambd", "threshold", "value"}) {
        if (!given(other)) continue;
        double* into = nullptr;
        for (const OptionNames& names : option_names) {
            if (names.function != function->name) continue;
            if (names.alpha != nullptr && std::string_view(names.alpha) == other) into = &alpha;
            if (names.beta != nullptr && std::string_view(names.beta) == other) into = &beta;
        }
        require(into != nullptr, "activation '", function->name, "' has no option '", other, "'");
        require(std::isnan(*into), "option '", other, "' is ", into == &alpha ? "alpha" : "beta",
                " of ", function->name, ", and both are given");
        *into = attrs.number(other);
        resolved = false;
    }
    if (std::isnan(alpha)) alpha = function->alpha;
    if (std::isnan(beta)) beta = function->beta;
}

}  // namespace dlprim::activation
