// SPDX-License-Identifier: MIT
// Scan's oracles: the definition in naive loops.
#pragma once

#include "graph/operator.hpp"

namespace dlprim::scan {

void oracle(OracleCall& call);
void oracle_backward(OracleBackwardCall& call);

}  // namespace dlprim::scan
