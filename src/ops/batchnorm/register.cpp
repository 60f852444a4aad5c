// SPDX-License-Identifier: MIT
// Registers BatchNorm and what it becomes in training.
#include "ops/batchnorm/operator.hpp"

namespace dlprim::batchnorm {

void register_batchnorm(OperatorRegistry& operators, EngineRegistry& engines) {
    operators.add(make_operator());
    operators.add(make_training());
    operators.add(make_backward());
    operators.add(make_shard_sum());
    add_shard_sum_engines(engines);
}

}  // namespace dlprim::batchnorm
