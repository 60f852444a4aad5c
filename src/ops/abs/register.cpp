// SPDX-License-Identifier: MIT
// Registers Abs.
#include "ops/abs/operator.hpp"

namespace dlprim {

void register_abs(OperatorRegistry& operators, EngineRegistry&) {
    operators.add(abs_op::make_operator());
}

}  // namespace dlprim
