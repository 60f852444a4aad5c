// SPDX-License-Identifier: MIT
// Registers Constant.
#include "ops/constant/operator.hpp"

namespace dlprim {

void register_constant(OperatorRegistry& operators, EngineRegistry&) {
    operators.add(constant::make_operator());
}

}  // namespace dlprim
