// SPDX-License-Identifier: MIT
// ArgReduce: x -> the largest or smallest element of each line along a dimension, or of all
// elements, and its position in that line (int64). Of equal elements the first counts, and a NaN is
// more extreme than every number, as in PyTorch's argmax and max. Any type but the narrow ones.
#pragma once

#include "engine/engine.hpp"
#include "graph/operator.hpp"

namespace dlprim::arg_reduce {

void oracle(OracleCall& call);
void oracle_backward(OracleBackwardCall& call);

// Each function registers the engines of one file.
void add_host_engine(EngineRegistry& engines);       ///< host.cpp
void add_reference_engine(EngineRegistry& engines);  ///< reference.cpp

/// Supports every problem without an epilogue whose values have the input's type.
Verdict check(const Problem& problem);

}  // namespace dlprim::arg_reduce
