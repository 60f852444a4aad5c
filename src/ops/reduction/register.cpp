// SPDX-License-Identifier: MIT
// Registers Reduction.
#include "ops/reduction/operator.hpp"

namespace dlprim {

void register_reduction(OperatorRegistry& operators, EngineRegistry&) {
    operators.add(reduction::make_operator());
}

}  // namespace dlprim
