// SPDX-License-Identifier: MIT
// Options of Activation: the function, and its parameters if the user gives them.
#pragma once

#include "base/attrs.hpp"
#include "engine/activations.hpp"

namespace dlprim::activation {

/// PyTorch's names of the parameters of functions.
struct OptionNames {
    const char *function, *alpha, *beta;  ///< nullptr if there is no other name
};
inline constexpr OptionNames option_names[] = {
    {"leaky_relu", "negative_slope", nullptr}, {"hardtanh", "min_val", "max_val"},
    {"softshrink", "lambd", nullptr},          {"hardshrink", "lambd", nullptr},
    {"threshold", "threshold", "value"},       {"softplus", nullptr, "threshold"}};

struct Options {
    const Activation* function = nullptr;
    double alpha = 0, beta = 0;  ///< as given, or the function's defaults
    bool resolved = false;       ///< whether the attributes contain both, as alpha and beta

    /// Throws Error(invalid_argument) on a parameter that belongs to another function.
    explicit Options(const Attrs& attrs);
};

}  // namespace dlprim::activation
