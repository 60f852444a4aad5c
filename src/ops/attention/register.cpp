// SPDX-License-Identifier: MIT
// Registers Attention.
#include "ops/attention/operator.hpp"

namespace dlprim {

void register_attention(OperatorRegistry& operators, EngineRegistry&) {
    operators.add(attention::make_operator());
}

}  // namespace dlprim
