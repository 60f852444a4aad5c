// SPDX-License-Identifier: MIT
// Registers GlobalPooling.
#include "ops/global_pooling/operator.hpp"

namespace dlprim {

void register_global_pooling(OperatorRegistry& operators, EngineRegistry&) {
    operators.add(global_pooling::make_operator());
}

}  // namespace dlprim
