// SPDX-License-Identifier: MIT
// MatMulAdd's oracles.
#pragma once

#include "graph/operator.hpp"

namespace dlprim::matmul_add {

void oracle(OracleCall& call);
void oracle_backward(OracleBackwardCall& call);

}  // namespace dlprim::matmul_add
