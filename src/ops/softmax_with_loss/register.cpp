// SPDX-License-Identifier: MIT
// Registers SoftmaxWithLoss.
#include "ops/softmax_with_loss/operator.hpp"

namespace dlprim {

void register_softmax_with_loss(OperatorRegistry& operators, EngineRegistry&) {
    operators.add(softmax_with_loss::make_operator());
}

}  // namespace dlprim
