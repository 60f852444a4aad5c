// SPDX-License-Identifier: MIT
// Registers Transpose and its engines.
#include "ops/transpose/operator.hpp"
#include "ops/transpose/options.hpp"

namespace dlprim {

void register_transpose(OperatorRegistry& operators, EngineRegistry& engines) {
    operators.add(transpose::make_operator());
    add_copy_engines(engines, transpose::movement);
}

}  // namespace dlprim
