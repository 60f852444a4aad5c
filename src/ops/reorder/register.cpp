// SPDX-License-Identifier: MIT
// Registers Reorder and its engines.
#include "ops/reorder/engines.hpp"
#include "ops/reorder/operator.hpp"

namespace dlprim {

void register_reorder(OperatorRegistry& operators, EngineRegistry& engines) {
    operators.add(reorder::make_operator());
    reorder::add_host_engine(engines);
    reorder::add_generic_engine(engines);
    reorder::add_strided_engines(engines);
}

}  // namespace dlprim
