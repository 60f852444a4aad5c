// SPDX-License-Identifier: MIT
// Registers Pooling, its gradient, the names that gradients had, and the engines of both.
#include "ops/pooling/engines.hpp"
#include "ops/pooling/operator.hpp"

namespace dlprim {

void register_pooling(OperatorRegistry& operators, EngineRegistry& engines) {
    operators.add(std::make_unique<pooling::Pooling>());
    operators.add(std::make_unique<pooling::PoolingBackward>());
    for (const char* name : {"Pooling2DBackward", "PoolingNDBackward", "AdaptivePoolingBackward"})
        operators.add(TypeAlias{name, pooling::backward_type});
    pooling::add_image_engines(engines);
    pooling::add_host_engines(engines);
    pooling::add_any_rank_host_engines(engines);
    pooling::add_any_rank_engines(engines);
}

}  // namespace dlprim
