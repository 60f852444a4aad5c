// SPDX-License-Identifier: MIT
// Registers Reshape.
#include "ops/reshape/operator.hpp"

namespace dlprim {

void register_reshape(OperatorRegistry& operators, EngineRegistry&) {
    operators.add(reshape::make_operator());
}

}  // namespace dlprim
