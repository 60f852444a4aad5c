// SPDX-License-Identifier: MIT
// Options of NLLLoss, and the shapes that follow from those of its operands.
#pragma once

#include "base/schema.hpp"
#include "base/text.hpp"

#include <dlprim/op_options.hpp>
#include <dlprim/shape.hpp>

#include <cstdint>
#include <limits>

namespace dlprim::nll_loss {

enum class Reduce { mean, sum, none };

struct Options {
    Reduce reduce = Reduce::mean;
    Shape label;                ///< [N, ...]: the input's shape without its dimension 1
    Shape label_kept;           ///< [N, 1, ...]
    double factor = 1;          ///< of each entry: 1, or 1 / number of labels for the mean
    std::int64_t ignore_index;  ///< the label that counts as none; `no_label`: every label counts
    bool return_weight;         ///< whether the total weight of the labels is an output

    static constexpr std::int64_t no_label = std::numeric_limits<std::int64_t>::min();

    Options(const Attrs& attrs, const Shape& input)
        : reduce(chosen<Reduce, &ops::NLLLoss::reduce>(attrs)),
          ignore_index(attrs.integer("ignore_index")),
          return_weight(attrs.boolean("return_weight")) {
        require(input.rank() >= 2, "input of shape ", input,
                " has no classes: [N, C, ...] is needed");
        Ints dims = input.to_vector();
        dims[1] = 1;
        label_kept = Shape(dims);
        dims.erase(dims.begin() + 1);
        label = Shape(dims);
        if (reduce == Reduce::mean) factor = 1.0 / static_cast<double>(label.numel());
    }
    /// Whether labels have weights other than 1. `inputs`: the number of the operator's inputs.
    bool weighs(std::size_t inputs) const {
        return inputs > 2 || ignore_index != no_label || return_weight;
    }
    Shape output() const { return reduce == Reduce::none ? label : Shape{1}; }
};

}  // namespace dlprim::nll_loss
