// SPDX-License-Identifier: MIT
// Registers Squeeze.
#include "ops/squeeze/operator.hpp"

namespace dlprim {

void register_squeeze(OperatorRegistry& operators, EngineRegistry&) {
    operators.add(squeeze::make_operator());
}

}  // namespace dlprim
