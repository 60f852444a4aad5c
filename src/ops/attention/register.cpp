// SPDX-License-Identifier: MIT
// Registers Attention.
#include "ops/attention/operator.hpp"

namespace dlprim {

void register_attention() {
    OperatorRegistry::instance().add(std::make_unique<attention::Operator>());
}

}  // namespace dlprim
