// SPDX-License-Identifier: MIT
// Registers what src/ops/global_pooling holds.
#include "ops/global_pooling/operator.hpp"

namespace dlprim {

void register_global_pooling() {
    OperatorRegistry::instance().add(std::make_unique<global_pooling::GlobalPooling>());
}

}  // namespace dlprim
