// SPDX-License-Identifier: MIT
// Registers GridSample, its gradients and their engines.
#include "ops/grid_sample/engines.hpp"
#include "ops/grid_sample/operators.hpp"

namespace dlprim {

void register_grid_sample(OperatorRegistry& operators, EngineRegistry& engines) {
    operators.add(grid_sample::make_forward());
    operators.add(grid_sample::make_backward_data());
    operators.add(grid_sample::make_backward_grid());
    grid_sample::add_host_engines(engines);
    grid_sample::add_reference_engines(engines);
}

}  // namespace dlprim
