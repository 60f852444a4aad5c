// SPDX-License-Identifier: MIT
// Registers what src/ops/batchnorm holds.
#include "ops/batchnorm/operator.hpp"

namespace dlprim {

void register_batchnorm() {
    OperatorRegistry::instance().add(std::make_unique<batchnorm::BatchNorm>());
    OperatorRegistry::instance().add(std::make_unique<batchnorm::BatchNormTraining>());
}

}  // namespace dlprim
