// SPDX-License-Identifier: MIT
// Registers what src/ops/activation holds.
#include "ops/activation/operator.hpp"

namespace dlprim {

void register_activation() {
    OperatorRegistry::instance().add(std::make_unique<activation::ActivationOperator>());
}

}  // namespace dlprim
