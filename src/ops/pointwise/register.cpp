// SPDX-License-Identifier: MIT
// Registers Pointwise and its engines.
#include "ops/pointwise/engines.hpp"
#include "ops/pointwise/operator.hpp"

namespace dlprim::pointwise {

void register_pointwise(OperatorRegistry& operators, EngineRegistry& engines) {
    operators.add(make_operator());
    add_generated_engine(engines);
    add_host_engine(engines);
}

}  // namespace dlprim::pointwise
