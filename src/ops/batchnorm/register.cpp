// SPDX-License-Identifier: MIT
// Registers BatchNorm and what it becomes in training.
#include "ops/batchnorm/operator.hpp"

namespace dlprim {

void register_batchnorm(OperatorRegistry& operators, EngineRegistry&) {
    operators.add(batchnorm::make_operator());
    operators.add(batchnorm::make_training());
    operators.add(batchnorm::make_backward());
}

}  // namespace dlprim
