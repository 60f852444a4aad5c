// SPDX-License-Identifier: MIT
// The oracles of TopK and Sort.
#pragma once

#include "graph/operator.hpp"
#include "ops/topk/lines.hpp"

namespace dlprim::topk {

void oracle(OracleCall& call, const Lines& lines);
void oracle_backward(OracleBackwardCall& call, const Lines& lines);

}  // namespace dlprim::topk
