// SPDX-License-Identifier: MIT
// Options of GroupNorm, and the matrix [rows, columns] that it normalises row by row.
#pragma once

#include "base/attrs.hpp"
#include "base/text.hpp"

#include <dlprim/shape.hpp>

namespace dlprim::groupnorm {

struct Options {
    std::int64_t groups = 1, channels = 1;
    double eps = 1e-5;
    bool affine = true;
    Shape matrix;     ///< [N * groups, elements per group]
    Shape statistic;  ///< [N, groups]: of the mean and 1 / sqrt(variance + eps)
    Shape blocks;     ///< [N, groups, channels per group, elements per channel]

    Options(const Attrs& attrs, const Shape& input)
        : eps(attrs.number("eps")), affine(attrs.boolean("affine")) {
        require(input.rank() >= 2, "input of shape ", input.str(),
                " has no channels: [N, C, ...] is needed");
        channels = input[1];
        const std::int64_t declared = attrs.integer("num_channels");
        require(declared == -1 || declared == channels, "input of shape ", input.str(), " has ",
                channels, " channels, num_channels is ", declared);
        groups = attrs.integer("num_groups");
        require(channels % groups == 0, "num_groups is ", groups, ", the input of shape ",
                input.str(), " has ", channels, " channels; a divisor is needed");
        const std::int64_t plane = input.product(2, input.rank());
        matrix = Shape{input[0] * groups, channels / groups * plane};
        statistic = Shape{input[0], groups};
        blocks = Shape{input[0], groups, channels / groups, plane};
    }
};

}  // namespace dlprim::groupnorm
