// SPDX-License-Identifier: MIT
// Registers what src/ops/layernorm holds.
#include "ops/layernorm/operator.hpp"

namespace dlprim {

void register_layernorm() {
    OperatorRegistry::instance().add(std::make_unique<layernorm::LayerNorm>());
    OperatorRegistry::instance().add(std::make_unique<layernorm::NormalizeRows>());
}

}  // namespace dlprim
