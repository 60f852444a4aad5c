// SPDX-License-Identifier: MIT
// Registers Fork.
#include "ops/fork/operator.hpp"

namespace dlprim {

void register_fork(OperatorRegistry& operators, EngineRegistry&) {
    operators.add(fork::make_operator());
}

}  // namespace dlprim
