// SPDX-License-Identifier: MIT
// Nonzero: x -> the positions of the elements that are not 0, in row-major order, as rows of `size`
// (int64), and how many there are (int64 [1]). Rows behind that number hold `fill`. It becomes a
// Scan, which counts, and NonzeroRows, which finds the element at which a count is reached.
#pragma once

#include "engine/engine.hpp"
#include "graph/operator.hpp"

namespace dlprim::nonzero {

// Each function registers the engines of one file.
void add_host_engine(EngineRegistry& engines);       ///< host.cpp
void add_reference_engine(EngineRegistry& engines);  ///< reference.cpp

/// Supports every problem.
Verdict check(const Problem& problem);
/// A binary search for each row.
double seconds(const Traits& device, const Problem& problem);

}  // namespace dlprim::nonzero
