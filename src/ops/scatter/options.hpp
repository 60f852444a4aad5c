// SPDX-License-Identifier: MIT
// Scatter's options, and its operands by what they are.
#pragma once

#include "engine/indexing/indexing.hpp"
#include "engine/problem.hpp"

#include <string>

namespace dlprim::scatter {

/// The numbers are those of REDUCTION in scatter/reference.cl.
enum class Reduction : std::uint8_t { none, add, mul, max, min, mean };

Reduction reduction_of(const Attrs& attrs);

/// A problem's operands. Where data is left out, it is zeros.
struct Operands {
    bool has_data;
    int indices, updates, result;  ///< numbers of operands; data is number 0
    Reduction reduction;
    bool includes_self;  ///< whether the slot's own element is combined with the updates
    Indexing indexing;

    explicit Operands(const Problem& problem);
};

}  // namespace dlprim::scatter
