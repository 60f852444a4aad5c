// SPDX-License-Identifier: MIT
// Registers Flatten.
#include "ops/flatten/operator.hpp"

namespace dlprim {

void register_flatten(OperatorRegistry& operators, EngineRegistry&) {
    operators.add(flatten::make_operator());
}

}  // namespace dlprim
