// SPDX-License-Identifier: MIT
// Registers Pad, its gradient and their engines.
#include "ops/pad/engines.hpp"
#include "ops/pad/operator.hpp"

namespace dlprim {

void register_pad(OperatorRegistry& operators, EngineRegistry& engines) {
    operators.add(pad::make_operator());
    operators.add(pad::make_backward());
    add_copy_engines(engines, pad::movement);
    pad::add_gather_engine(engines);
    pad::add_gather_host_engine(engines);
}

}  // namespace dlprim
