// SPDX-License-Identifier: MIT
// Registers GroupNorm.
#include "ops/groupnorm/operator.hpp"

namespace dlprim {

void register_groupnorm(OperatorRegistry& operators, EngineRegistry&) {
    operators.add(groupnorm::make_operator());
    operators.add(groupnorm::make_backward());
}

}  // namespace dlprim
