// SPDX-License-Identifier: MIT
// Registers Pointwise and its engines.
#include "ops/pointwise/engines.hpp"
#include "ops/pointwise/operator.hpp"

namespace dlprim {

void register_pointwise(OperatorRegistry& operators, EngineRegistry& engines) {
    operators.add(pointwise::make_operator());
    pointwise::add_generated_engine(engines);
    pointwise::add_host_engine(engines);
}

}  // namespace dlprim
