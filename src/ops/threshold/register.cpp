// SPDX-License-Identifier: MIT
// Registers what src/ops/threshold holds.
#include "ops/threshold/operator.hpp"

namespace dlprim {

void register_threshold() {
    OperatorRegistry::instance().add(std::make_unique<threshold::Threshold>());
}

}  // namespace dlprim
