// SPDX-License-Identifier: MIT
// Registers what src/ops/groupnorm holds.
#include "ops/groupnorm/operator.hpp"

namespace dlprim {

void register_groupnorm() {
    OperatorRegistry::instance().add(std::make_unique<groupnorm::GroupNorm>());
}

}  // namespace dlprim
