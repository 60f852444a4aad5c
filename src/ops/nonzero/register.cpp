// SPDX-License-Identifier: MIT
// Registers Nonzero, NonzeroRows and its engines.
#include "ops/nonzero/engines.hpp"
#include "ops/nonzero/operators.hpp"

namespace dlprim {

void register_nonzero(OperatorRegistry& operators, EngineRegistry& engines) {
    operators.add(nonzero::make_nonzero());
    operators.add(nonzero::make_rows());
    nonzero::add_host_engine(engines);
    nonzero::add_reference_engine(engines);
}

}  // namespace dlprim
