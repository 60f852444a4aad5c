// SPDX-License-Identifier: MIT
// Scatter's oracles: the definition in naive loops.
#pragma once

#include "graph/operator.hpp"

namespace dlprim::scatter {

void oracle(OracleCall& call);
void oracle_backward(OracleBackwardCall& call);

}  // namespace dlprim::scatter
