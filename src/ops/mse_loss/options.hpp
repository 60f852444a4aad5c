// SPDX-License-Identifier: MIT
// Options of MSELoss.
#pragma once

#include "base/attrs.hpp"
#include "base/text.hpp"

#include <dlprim/shape.hpp>

namespace dlprim::mse_loss {

enum class Reduce { mean, sum, none };

struct Options {
    Reduce reduce = Reduce::mean;
    double factor = 1;  ///< of each square: 1, or 1 / number of elements for the mean
    Shape output{1};

    Options(const Attrs& attrs, const Shape& input) {
        static const std::vector<std::string> names{"mean", "sum", "none"};
        const std::string& name = attrs.text("reduce");
        if (name == "sum")
            reduce = Reduce::sum;
        else if (name == "none")
            reduce = Reduce::none;
        else
            require(name == "mean", "reduce '", name, "' is not one of mean, sum, none",
                    did_you_mean(name, names));
        if (reduce == Reduce::mean) factor = 1.0 / static_cast<double>(input.numel());
        if (reduce == Reduce::none) output = input;
    }
};

}  // namespace dlprim::mse_loss
