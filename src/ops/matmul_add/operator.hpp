// SPDX-License-Identifier: MIT
// MatMulAdd: y = alpha * op(a) op(b) + beta * c, where c is broadcast to the product's shape. It
// becomes a MatMul, to whose launch c is added where it has the form of a bias or of the product.
#pragma once

#include "graph/operator.hpp"

namespace dlprim::matmul_add {

void oracle(OracleCall& call);
void oracle_backward(OracleBackwardCall& call);

}  // namespace dlprim::matmul_add
