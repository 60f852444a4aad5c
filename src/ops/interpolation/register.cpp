// SPDX-License-Identifier: MIT
// Registers Interpolation, its gradient and their engines.
#include "ops/interpolation/engines.hpp"
#include "ops/interpolation/operator.hpp"

namespace dlprim {

void register_interpolation(OperatorRegistry& operators, EngineRegistry& engines) {
    operators.add(interpolation::make_operator());
    operators.add(interpolation::make_backward());
    interpolation::add_reference_engine(engines);
    interpolation::add_backward_engine(engines);
    interpolation::add_host_engine(engines);
    interpolation::add_backward_host_engine(engines);
}

}  // namespace dlprim
