// SPDX-License-Identifier: MIT
// Registers Parameter.
#include "ops/parameter/operator.hpp"

namespace dlprim {

void register_parameter(OperatorRegistry& operators, EngineRegistry&) {
    operators.add(parameter::make_operator());
}

}  // namespace dlprim
