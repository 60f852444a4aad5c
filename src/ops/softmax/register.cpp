// SPDX-License-Identifier: MIT
// Registers Softmax.
#include "ops/softmax/operator.hpp"

namespace dlprim {

void register_softmax(OperatorRegistry& operators, EngineRegistry&) {
    operators.add(softmax::make_operator());
}

}  // namespace dlprim
