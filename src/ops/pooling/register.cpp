// SPDX-License-Identifier: MIT
// Registers Pooling, its gradient, the names that gradients had, and the engines of both.
#include "ops/pooling/engines.hpp"
#include "ops/pooling/operator.hpp"

namespace dlprim::pooling {

void register_pooling(OperatorRegistry& operators, EngineRegistry& engines) {
    operators.add(std::make_unique<Pooling>());
    operators.add(std::make_unique<PoolingBackward>());
    for (const char* name : {"Pooling2DBackward", "PoolingNDBackward", "AdaptivePoolingBackward"})
        operators.add(TypeAlias{name, backward_type});
    add_image_engines(engines);
    add_host_engines(engines);
    add_any_rank_host_engines(engines);
    add_any_rank_engines(engines);
}

}  // namespace dlprim::pooling
