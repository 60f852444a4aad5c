// SPDX-License-Identifier: MIT
// Gather's oracles: the definition in naive loops.
#pragma once

#include "graph/operator.hpp"

namespace dlprim::gather {

void oracle(OracleCall& call);
void oracle_backward(OracleBackwardCall& call);

}  // namespace dlprim::gather
