// SPDX-License-Identifier: MIT
// Scan's options and the lines that it walks along.
#pragma once

#include "base/attrs.hpp"
#include "engine/lines.hpp"

#include <dlprim/dtype.hpp>

namespace dlprim::scan {

constexpr const char* type = "Scan";

/// The numbers are those of METHOD in scan/reference.cl.
enum class Method : std::uint8_t { sum, prod, max, min, logsumexp };

Method method_of(const Attrs& attrs);

struct Options {
    Method method;
    int dim;
    bool reverse, exclusive;
    DType result;  ///< type of the values
    AxisLines lines;

    /// Throws Error(invalid_argument).
    Options(const Attrs& attrs, const Shape& x, DType dtype);
    /// Whether a second output has the positions of the values.
    bool has_positions() const { return method == Method::max || method == Method::min; }
    /// Where the k-th element along the line lies.
    std::int64_t at(std::int64_t line, std::int64_t k) const {
        return lines.at(line, reverse ? lines.length - 1 - k : k);
    }
};

}  // namespace dlprim::scan
