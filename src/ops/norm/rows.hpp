// SPDX-License-Identifier: MIT
// What LayerNorm, RMSNorm and GroupNorm do alike: they normalise rows of elements, each to mean 0
// and variance 1 (RMSNorm: to a mean of squares of 1), and then apply weights and biases.
#pragma once

#include "graph/operator.hpp"

#include <string_view>

namespace dlprim::norm {

/// The input as rows, and which weight each of their elements has. LayerNorm has a weight for each
/// column of a row. GroupNorm has rows of one group's channels, and a weight for each channel.
struct Rows {
    double eps = 0;
    bool centered = true;        ///< whether the mean is subtracted
    std::size_t parameters = 0;  ///< weight and bias, only weight, or none
    Shape matrix;                ///< [rows, columns]
    Shape statistic;             ///< of the mean and 1 / sqrt(variance + eps)
    Shape weight;                ///< and of the bias
    std::int64_t groups = 1;     ///< rows whose weights differ
    std::int64_t plane = 1;      ///< consecutive elements that share a weight

    /// Shapes in which rows and weights broadcast: forward and in the gradient.
    Shape scaled, scale;
    Shape blocks, row, line;
    std::string_view row_axes, line_axes;  ///< of `blocks`: over which means of rows and sums go

    std::size_t weight_of(std::size_t row_number, std::size_t column) const;
    /// How many statistics a row has: mean and deviation, or only the latter.
    std::size_t statistics() const { return centered ? 2 : 1; }
};

/// Of the options of each type, or of its gradient's, which lack those that shapes do not depend
/// on. Throws Error(invalid_argument).
Rows layer_rows(const Attrs& attrs, const Shape& input);
Rows rms_rows(const Attrs& attrs, const Shape& input);
Rows group_rows(const Attrs& attrs, const Shape& input);

void oracle(const Rows& rows, OracleCall& call);
void oracle_backward(const Rows& rows, OracleBackwardCall& call);
/// That of the gradients, whose inputs are dy, x, the statistics and perhaps the weight.
void gradient_oracle(const Rows& rows, OracleCall& call);

/// What all expand into: normalize_rows.cpp.
std::unique_ptr<Operator> make_normalize_rows();

}  // namespace dlprim::norm
