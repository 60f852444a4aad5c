// SPDX-License-Identifier: MIT
// Options of Reduction: the method and the dimensions.
#pragma once

#include "base/schema.hpp"
#include "base/text.hpp"

#include <dlprim/op_options.hpp>
#include <dlprim/shape.hpp>

#include <algorithm>

namespace dlprim::reduction {

enum class Method { sum, sumsq, abssum, mean };

struct Options {
    Method method = Method::sum;
    bool keep_dim = true;
    double scale = 1;  ///< output_scale, divided by the number of elements for mean
    Ints axes;         ///< sorted, not negative
    Shape kept;        ///< the input's shape with those dimensions set to 1
    Shape output;

    Options(const Attrs& attrs, const Shape& input)
        : method(chosen<Method, &ops::Reduction::method>(attrs)),
          keep_dim(attrs.boolean("keep_dim")),
          scale(attrs.number("output_scale")) {
        const int rank = input.rank();
        axes = attrs.ints("dims");
        if (axes.empty()) {
            std::int64_t start = attrs.integer("start_axis");
            if (start < 0) start += rank;
            require(start >= 0 && start <= rank, "start_axis ", attrs.integer("start_axis"),
                    " is outside the input of shape ", input);
            for (std::int64_t i = start; i < rank; ++i) axes.push_back(i);
        }
        for (auto& axis : axes) {
            require(axis >= -rank && axis < rank, "dims holds ", axis, ", the input of shape ",
                    input, " has ", rank, " dimensions");
            if (axis < 0) axis += rank;
        }
        std::sort(axes.begin(), axes.end());
        require(std::adjacent_find(axes.begin(), axes.end()) == axes.end(),
                "dims names a dimension twice");

        Ints all = input.to_vector(), left;
        std::int64_t reduced = 1;
        for (int i = 0; i < rank; ++i) {
            const auto k = static_cast<std::size_t>(i);
            if (std::find(axes.begin(), axes.end(), i) == axes.end()) {
                left.push_back(all[k]);
            } else {
                reduced *= all[k];
                all[k] = 1;
            }
        }
        kept = Shape(all);
        if (left.empty()) left.push_back(1);  // everything is reduced: one number, like a loss
        output = keep_dim ? kept : Shape(left);
        if (method == Method::mean) scale /= static_cast<double>(reduced);
    }
};

}  // namespace dlprim::reduction
