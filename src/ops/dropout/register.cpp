// SPDX-License-Identifier: MIT
// Registers Dropout.
#include "ops/dropout/operator.hpp"

namespace dlprim {

void register_dropout(OperatorRegistry& operators, EngineRegistry&) {
    operators.add(dropout::make_operator());
}

}  // namespace dlprim
