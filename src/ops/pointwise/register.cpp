// SPDX-License-Identifier: MIT
// Registers Pointwise and its engines.
#include "ops/pointwise/operator.hpp"

namespace dlprim {

void register_pointwise() {
    OperatorRegistry::instance().add(std::make_unique<pointwise::PointwiseOperator>());
    pointwise::add_generated_engine();
    pointwise::add_host_engine();
}

}  // namespace dlprim
