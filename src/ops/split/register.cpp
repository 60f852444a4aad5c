// SPDX-License-Identifier: MIT
// Registers Split.
#include "ops/split/operator.hpp"

namespace dlprim {

void register_split(OperatorRegistry& operators, EngineRegistry&) {
    operators.add(split_op::make_operator());
}

}  // namespace dlprim
