// SPDX-License-Identifier: MIT
// Registers BatchNorm and what it becomes in training.
#include "ops/batchnorm/operator.hpp"

namespace dlprim {

void register_batchnorm(OperatorRegistry& operators, EngineRegistry& engines) {
    operators.add(batchnorm::make_operator());
    operators.add(batchnorm::make_training());
    operators.add(batchnorm::make_backward());
    operators.add(batchnorm::make_shard_sum());
    batchnorm::add_shard_sum_engines(engines);
}

}  // namespace dlprim
