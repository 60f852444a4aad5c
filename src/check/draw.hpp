// SPDX-License-Identifier: MIT
// What is drawn for a check of an engine: random numbers, and the edges that the problem allows.
//
// Three kinds of operands are told apart. Indices are valid ones of their dimension: its last and
// first position, those that count from its end where the operator allows it, and repeated ones.
// Integers of which an operator of gradients does not say what they name are zeros. All others are
// numbers: small ones first, and then, where the operator defines results for them, signed zeros,
// large and small numbers, infinities, NaN and the limits of integer types.
#pragma once

#include "engine/problem.hpp"

#include <cstddef>
#include <vector>

namespace dlprim {

/// One set of inputs.
struct Draw {
    enum class Numbers { normal, above_half, edges };
    Numbers numbers = Numbers::normal;
    int turn = 0;  ///< which of the edges of an index come first: see index_turns()
};

/// After how many draws each edge of the problem's indices has been among them. More than one only
/// where the problem has few indices.
int index_turns(const Problem& problem);
/// Whether the operator defines what it makes of the edges of its numbers.
bool has_edges(const Problem& problem);
/// Whether the problem reads integers that may be indices, and nothing says what they name.
bool has_unknown_indices(const Problem& problem);

/// The inputs in row-major order. The same for the same arguments.
std::vector<std::vector<std::byte>> draw_inputs(const Problem& problem, const Draw& draw);

}  // namespace dlprim
