// SPDX-License-Identifier: MIT
// The rows that LayerNorm, RMSNorm and GroupNorm normalise; see rows.hpp.
#include "ops/norm/rows.hpp"

#include "base/text.hpp"
#include "graph/lowering.hpp"

#include <algorithm>

namespace dlprim::norm {

std::size_t Rows::weight_of(std::size_t row_number, std::size_t column) const {
    const auto cycle = static_cast<std::size_t>(groups), shared = static_cast<std::size_t>(plane);
    const std::size_t weights = static_cast<std::size_t>(matrix[1]) / shared;
    return row_number % cycle * weights + column / shared;
}

Rows layer_rows(const Attrs& attrs, const Shape& input) {
    Rows rows;
    if (attrs.has("eps")) {
        rows.eps = attrs.number("eps");
        const bool bias = attrs.has("bias") && attrs.boolean("bias");
        rows.parameters = attrs.boolean("elementwise_affine") ? (bias ? 2 : 1) : 0;
    }
    const Ints given = attrs.ints("normalized_shape");
    const int rank = input.rank();
    const std::int64_t trailing =
        given.empty() ? attrs.integer("dims") : static_cast<std::int64_t>(given.size());
    require(trailing >= 1 && trailing <= rank, "normalises ", trailing,
            " trailing dimensions, the input of shape ", input, " has ", rank);
    const int first = rank - static_cast<int>(trailing);
    rows.weight = Shape(input.dims().subspan(static_cast<std::size_t>(first)));
    require(given.empty() || Shape(given) == rows.weight, "normalized_shape is ", Shape(given),
            ", the input of shape ", input, " ends in ", rows.weight);
    Ints dims = input.to_vector();
    std::fill(dims.begin() + first, dims.end(), 1);
    rows.statistic = Shape(dims);
    rows.matrix = Shape{input.product(0, first), rows.weight.numel()};
    // Weights are applied to rows, so that they merge with the end of NormalizeRows.
    rows.scaled = rows.blocks = rows.matrix;
    rows.scale = rows.line = Shape{rows.matrix[1]};
    rows.row = Shape{rows.matrix[0], 1};
    rows.row_axes = "[1]";
    rows.line_axes = "[0]";
    return rows;
}

Rows rms_rows(const Attrs& attrs, const Shape& input) {
    Rows rows = layer_rows(attrs, input);
    rows.centered = false;
    return rows;
}

Rows group_rows(const Attrs& attrs, const Shape& input) {
    Rows rows;
    require(input.rank() >= 2, "input of shape ", input, " has no channels: [N, C, ...] is needed");
    const std::int64_t channels = input[1], groups = attrs.integer("num_groups");
    if (attrs.has("eps")) {
        rows.eps = attrs.number("eps");
        rows.parameters = attrs.boolean("affine") ? 2 : 0;
        const std::int64_t declared = attrs.integer("num_channels");
        require(declared == -1 || declared == channels, "input of shape ", input, " has ", channels,
                " channels, num_channels is ", declared);
    }
    require(channels % groups == 0, "num_groups is ", groups, ", the input of shape ", input,
            " has ", channels, " channels; a divisor is needed");
    rows.groups = groups;
    rows.plane = input.product(2, input.rank());
    rows.weight = Shape{channels};
    rows.statistic = Shape{input[0], groups};
    rows.matrix = Shape{input[0] * groups, channels / groups * rows.plane};
    rows.scaled = input;
    rows.scale = channel_shape(channels, input.rank());
    rows.blocks = Shape{input[0], groups, channels / groups, rows.plane};
    rows.row = Shape{input[0], groups, 1, 1};
    rows.line = Shape{groups, channels / groups, 1};
    rows.row_axes = "[2,3]";
    rows.line_axes = "[0,3]";
    return rows;
}

}  // namespace dlprim::norm
