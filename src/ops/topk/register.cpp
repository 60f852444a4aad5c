// SPDX-License-Identifier: MIT
// Registers TopK, Sort and their engines.
#include "ops/topk/engines.hpp"
#include "ops/topk/operators.hpp"

namespace dlprim {

void register_topk(OperatorRegistry& operators, EngineRegistry& engines) {
    operators.add(topk::make_topk());
    operators.add(topk::make_sort());
    topk::add_host_engine(engines);
    topk::add_reference_engine(engines);
}

}  // namespace dlprim
