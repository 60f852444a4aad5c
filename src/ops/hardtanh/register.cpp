// SPDX-License-Identifier: MIT
// Registers what src/ops/hardtanh holds.
#include "ops/hardtanh/operator.hpp"

namespace dlprim {

void register_hardtanh() {
    OperatorRegistry::instance().add(std::make_unique<hardtanh::Hardtanh>());
}

}  // namespace dlprim
