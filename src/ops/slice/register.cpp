// SPDX-License-Identifier: MIT
// Registers Slice and its engines.
#include "ops/slice/operator.hpp"
#include "ops/slice/options.hpp"

namespace dlprim {

void register_slice(OperatorRegistry& operators, EngineRegistry& engines) {
    operators.add(slice::make_operator());
    add_copy_engines(engines, slice::movement);
}

}  // namespace dlprim
