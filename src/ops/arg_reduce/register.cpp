// SPDX-License-Identifier: MIT
// Registers ArgReduce and its engines.
#include "ops/arg_reduce/engines.hpp"
#include "ops/arg_reduce/operator.hpp"

namespace dlprim {

void register_arg_reduce(OperatorRegistry& operators, EngineRegistry& engines) {
    operators.add(arg_reduce::make_operator());
    arg_reduce::add_host_engine(engines);
    arg_reduce::add_reference_engine(engines);
}

}  // namespace dlprim
