// SPDX-License-Identifier: MIT
// Registers PReLU.
#include "ops/prelu/operator.hpp"

namespace dlprim {

void register_prelu(OperatorRegistry& operators, EngineRegistry&) {
    operators.add(prelu::make_operator());
}

}  // namespace dlprim
