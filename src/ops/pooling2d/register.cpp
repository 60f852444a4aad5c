// SPDX-License-Identifier: MIT
// Registers Pooling2D, its gradient and their engines.
#include "ops/pooling2d/engines.hpp"
#include "ops/pooling2d/operator.hpp"

namespace dlprim {

void register_pooling2d(OperatorRegistry& operators, EngineRegistry& engines) {
    operators.add(pooling2d::make_operator());
    operators.add(pooling2d::make_backward());
    operators.add(pooling2d::make_with_planes());
    operators.add(pooling2d::make_backward_of_planes());
    pooling2d::add_generic_engine(engines);
    pooling2d::add_host_engine(engines);
    pooling2d::add_backward_engine(engines);
    pooling2d::add_backward_host_engine(engines);
}

}  // namespace dlprim
