// SPDX-License-Identifier: MIT
// Registers MatMulAdd, which has no engines of its own.
#include "ops/matmul_add/operator.hpp"

namespace dlprim {

void register_matmul_add(OperatorRegistry& operators, EngineRegistry&) {
    operators.add(matmul_add::make_operator());
}

}  // namespace dlprim
