// SPDX-License-Identifier: MIT
// Registers LayerNorm and NormalizeRows, which it is made of.
#include "ops/layernorm/operator.hpp"

namespace dlprim {

void register_layernorm(OperatorRegistry& operators, EngineRegistry&) {
    operators.add(layernorm::make_operator());
    operators.add(layernorm::make_normalize_rows());
    operators.add(layernorm::make_backward());
}

}  // namespace dlprim
