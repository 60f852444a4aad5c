// SPDX-License-Identifier: MIT
// TopK: x -> the k largest or smallest elements of each line along a dimension, in order, and their
// positions (int64). Of equal elements the one in front comes first; a NaN is larger than all
// numbers. Sort: all elements of each line in that way. Its gradient is a Scatter.
#pragma once

#include "engine/engine.hpp"
#include "graph/operator.hpp"
#include "ops/topk/lines.hpp"

namespace dlprim::topk {

void oracle(OracleCall& call, const Lines& lines);
void oracle_backward(OracleBackwardCall& call, const Lines& lines);

// Each function registers the engines of one file.
void add_host_engine(EngineRegistry& engines);       ///< host.cpp
void add_reference_engine(EngineRegistry& engines);  ///< reference.cpp

/// Supports every type, and lines of fewer than 2^31 elements.
Verdict check(const Problem& problem);
/// `steps` comparisons per element, at a billion a second and compute unit.
double seconds(const Traits& device, const Problem& problem, double steps);

}  // namespace dlprim::topk
