// SPDX-License-Identifier: MIT
// Options of LayerNorm, and the matrix [rows, columns] that it normalises row by row.
#pragma once

#include "base/attrs.hpp"
#include "base/text.hpp"

#include <dlprim/shape.hpp>

#include <algorithm>

namespace dlprim::layernorm {

struct Options {
    double eps = 1e-5;
    bool affine = true, bias = true;
    Shape normalized;  ///< the trailing dimensions, and the shape of weight and bias
    Shape matrix;      ///< [rows, columns]
    Shape statistic;   ///< of the mean and 1 / sqrt(variance + eps): trailing dimensions are 1

    Options(const Attrs& attrs, const Shape& input)
        : eps(attrs.number("eps")),
          affine(attrs.boolean("elementwise_affine")),
          bias(attrs.boolean("bias")) {
        const Ints given = attrs.ints("normalized_shape");
        const int rank = input.rank();
        std::int64_t trailing =
            given.empty() ? attrs.integer("dims") : static_cast<std::int64_t>(given.size());
        require(trailing >= 1 && trailing <= rank, "normalises ", trailing,
                " trailing dimensions, the input of shape ", input.str(), " has ", rank);
        const int first = rank - static_cast<int>(trailing);
        normalized = Shape(input.dims().subspan(static_cast<std::size_t>(first)));
        require(given.empty() || Shape(given) == normalized, "normalized_shape is ",
                Shape(given).str(), ", the input of shape ", input.str(), " ends in ",
                normalized.str());
        matrix = Shape{input.product(0, first), normalized.numel()};
        Ints dims = input.to_vector();
        std::fill(dims.begin() + first, dims.end(), 1);
        statistic = Shape(dims);
    }
    /// The number of parameters: weight and bias, only weight, or none.
    std::size_t parameters() const { return affine ? (bias ? 2 : 1) : 0; }
};

}  // namespace dlprim::layernorm
