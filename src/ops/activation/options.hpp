// SPDX-License-Identifier: MIT
// Options of Activation: which function, and its parameters where the user gives them.
#pragma once

#include "base/attrs.hpp"
#include "engine/activations.hpp"

#include <cmath>

namespace dlprim::activation {

struct Options {
    const Activation* function = nullptr;
    double alpha = 0, beta = 0;  ///< as given, or the function's defaults
    bool resolved = false;       ///< both stand in the attributes

    explicit Options(const Attrs& attrs) : function(&find_activation(attrs.text("activation"))) {
        // Not a number stands for "not given".
        alpha = attrs.number("alpha");
        beta = attrs.number("beta");
        const double slope = attrs.number("negative_slope");
        resolved = !std::isnan(alpha) && !std::isnan(beta) && std::isnan(slope);
        if (!std::isnan(slope)) alpha = slope;
        if (std::isnan(alpha)) alpha = function->alpha;
        if (std::isnan(beta)) beta = function->beta;
    }
};

}  // namespace dlprim::activation
