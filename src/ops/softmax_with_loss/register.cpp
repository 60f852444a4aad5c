// SPDX-License-Identifier: MIT
// Registers what src/ops/softmax_with_loss holds.
#include "ops/softmax_with_loss/operator.hpp"

namespace dlprim {

void register_softmax_with_loss() {
    OperatorRegistry::instance().add(std::make_unique<softmax_with_loss::SoftmaxWithLoss>());
}

}  // namespace dlprim
