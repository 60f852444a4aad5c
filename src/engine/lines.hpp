// SPDX-License-Identifier: MIT
// AxisLines: a tensor as lines along one dimension, for engines that walk along them.
#pragma once

#include <dlprim/shape.hpp>

#include <cstdint>

namespace dlprim {

/// Element j of line (o, i) lies at (o * length + j) * inner + i.
struct AxisLines {
    std::int64_t outer = 1, length = 1, inner = 1;

    /// A scalar is one line of one element.
    AxisLines(const Shape& x, int dim)
        : outer(x.product(0, dim)),
          length(x.rank() == 0 ? 1 : x[dim]),
          inner(x.product(dim + 1, x.rank())) {}
    explicit AxisLines(std::int64_t all) : length(all) {}

    std::int64_t count() const { return outer * inner; }
    std::int64_t at(std::int64_t line, std::int64_t j) const {
        return (line / inner * length + j) * inner + line % inner;
    }
};

/// The dimension that an option names, counted from the front; a scalar has dimension 0, as in
/// PyTorch. Throws Error(invalid_argument).
int dimension_of(std::int64_t given, const Shape& x);

}  // namespace dlprim
