// SPDX-License-Identifier: MIT
// Registers Elementwise.
#include "ops/elementwise/operator.hpp"

namespace dlprim {

void register_elementwise(OperatorRegistry& operators, EngineRegistry&) {
    operators.add(elementwise::make_operator());
}

}  // namespace dlprim
