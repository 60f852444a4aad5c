// SPDX-License-Identifier: MIT
// Scan: x -> for each element the sum, product, maximum, minimum, or logarithm of the sum of
// exponentials, of the elements of its line up to itself (torch.cumsum, cumprod, cummax, cummin,
// logcumsumexp). Maxima and minima have a second output, their positions (int64): of equal elements
// the last counts, and a NaN is more extreme than every number, as in PyTorch. Integers wrap
// around; sums of floats are compensated.
#pragma once

#include "engine/engine.hpp"
#include "graph/operator.hpp"
#include "ops/scan/options.hpp"

namespace dlprim::scan {

void oracle(OracleCall& call);
void oracle_backward(OracleBackwardCall& call);

// Each function registers the engines of one file.
void add_host_engine(EngineRegistry& engines);       ///< host.cpp
void add_reference_engine(EngineRegistry& engines);  ///< reference.cpp

/// Supports every problem without an epilogue whose results have the operator's type.
Verdict check(const Problem& problem);
Options options_of(const Problem& problem);

}  // namespace dlprim::scan
