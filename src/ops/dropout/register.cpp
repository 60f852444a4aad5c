// SPDX-License-Identifier: MIT
// Registers what src/ops/dropout holds.
#include "ops/dropout/operator.hpp"

namespace dlprim {

void register_dropout() {
    OperatorRegistry::instance().add(std::make_unique<dropout::Dropout>());
}

}  // namespace dlprim
