// SPDX-License-Identifier: MIT
// Registers what src/ops/elementwise holds.
#include "ops/elementwise/operator.hpp"

namespace dlprim {

void register_elementwise() {
    OperatorRegistry::instance().add(std::make_unique<elementwise::Elementwise>());
}

}  // namespace dlprim
