// SPDX-License-Identifier: MIT
// Registers LayerNorm, GroupNorm, their gradients, and NormalizeRows, which they are made of.
#include "ops/norm/rows.hpp"

namespace dlprim {

void register_norm(OperatorRegistry& operators, EngineRegistry&) {
    operators.add(norm::make_layer_norm());
    operators.add(norm::make_layer_norm_backward());
    operators.add(norm::make_group_norm());
    operators.add(norm::make_group_norm_backward());
    operators.add(norm::make_normalize_rows());
}

}  // namespace dlprim
