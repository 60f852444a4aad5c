// SPDX-License-Identifier: MIT
// Registers Activation.
#include "ops/activation/operator.hpp"

namespace dlprim {

void register_activation(OperatorRegistry& operators, EngineRegistry&) {
    operators.add(activation::make_operator());
    operators.add(activation::make_backward());
}

}  // namespace dlprim
