// SPDX-License-Identifier: MIT
// Registers what src/ops/prelu holds.
#include "ops/prelu/operator.hpp"

namespace dlprim {

void register_prelu() {
    OperatorRegistry::instance().add(std::make_unique<prelu::PReLU>());
}

}  // namespace dlprim
