// SPDX-License-Identifier: MIT
// TopK's geometry, and its keys: unsigned integers whose order is that of the elements.
#pragma once

#include "base/attrs.hpp"
#include "engine/lines.hpp"

#include <dlprim/dtype.hpp>
#include <dlprim/shape.hpp>

#include <cstdint>

namespace dlprim::topk {

constexpr const char* type = "TopK";

/// Lines along a dimension.
struct Lines : AxisLines {
    std::int64_t k = 1;  ///< how many of each line are wanted
    bool largest = true;
    Shape result;

    /// From the options. Throws Error(invalid_argument).
    Lines(const Attrs& attrs, const Shape& x);
};

/// How raw bits of a type become keys: a float's sign decides between flipping all bits and the
/// highest one, an integer's highest bit is flipped if it has a sign. Every NaN is the largest key,
/// and -0 is 0.
struct KeyForm {
    std::uint64_t sign = 0;      ///< the bit of the sign; 0 of unsigned types
    std::uint64_t infinity = 0;  ///< of floats: the bits of infinity, above which are NaNs
    std::uint64_t all = 0;       ///< all bits of the type

    explicit KeyForm(DType dtype);
    /// The largest come first where `largest`.
    std::uint64_t key(std::uint64_t bits, bool largest) const {
        if (infinity != 0) {
            const std::uint64_t magnitude = bits & ~sign;
            const bool negative = (bits & sign) != 0 && magnitude != 0;
            bits = magnitude > infinity ? all : negative ? ~bits & all : magnitude | sign;
        } else {
            bits ^= sign;
        }
        return largest ? ~bits & all : bits;
    }
};

}  // namespace dlprim::topk
