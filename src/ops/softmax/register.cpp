// SPDX-License-Identifier: MIT
// Registers Softmax.
#include "ops/softmax/operator.hpp"

namespace dlprim {

void register_softmax(OperatorRegistry& operators, EngineRegistry&) {
    operators.add(softmax::make_operator());
    operators.add(softmax::make_backward());
}

}  // namespace dlprim
