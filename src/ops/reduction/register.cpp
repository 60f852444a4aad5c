// SPDX-License-Identifier: MIT
// Registers what src/ops/reduction holds.
#include "ops/reduction/operator.hpp"

namespace dlprim {

void register_reduction() {
    OperatorRegistry::instance().add(std::make_unique<reduction::Reduction>());
}

}  // namespace dlprim
