// SPDX-License-Identifier: MIT
// Registers PoolingND, AdaptivePooling, their gradients and their engines.
#include "ops/pooling_nd/engines.hpp"
#include "ops/pooling_nd/operators.hpp"

namespace dlprim {

void register_pooling_nd(OperatorRegistry& operators, EngineRegistry& engines) {
    operators.add(pooling_nd::make_pooling());
    operators.add(pooling_nd::make_adaptive());
    operators.add(pooling_nd::make_backward(false));
    operators.add(pooling_nd::make_backward(true));
    pooling_nd::add_host_engines(engines);
    pooling_nd::add_reference_engines(engines);
}

}  // namespace dlprim
