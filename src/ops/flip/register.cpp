// SPDX-License-Identifier: MIT
// Registers Flip and its engines.
#include "ops/flip/operator.hpp"

namespace dlprim {

void register_flip(OperatorRegistry& operators, EngineRegistry& engines) {
    operators.add(flip::make_operator());
    add_copy_engines(engines, flip::movement);
}

}  // namespace dlprim
