// SPDX-License-Identifier: MIT
// Registers Scatter and its engines.
#include "ops/scatter/engines.hpp"
#include "ops/scatter/operator.hpp"

namespace dlprim {

void register_scatter(OperatorRegistry& operators, EngineRegistry& engines) {
    operators.add(scatter::make_operator());
    scatter::add_host_engine(engines);
    scatter::add_winners_engine(engines);
    scatter::add_reference_engine(engines);
}

}  // namespace dlprim
