// SPDX-License-Identifier: MIT
// Registers Gather and its engines.
#include "ops/gather/engines.hpp"
#include "ops/gather/operator.hpp"

namespace dlprim {

void register_gather(OperatorRegistry& operators, EngineRegistry& engines) {
    operators.add(gather::make_operator());
    gather::add_host_engine(engines);
    gather::add_reference_engine(engines);
}

}  // namespace dlprim
