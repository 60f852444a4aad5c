// SPDX-License-Identifier: MIT
// Registers Resize, its gradient and their engines.
#include "ops/resize/engines.hpp"
#include "ops/resize/operators.hpp"

namespace dlprim {

void register_resize(OperatorRegistry& operators, EngineRegistry& engines) {
    operators.add(resize::make_forward());
    operators.add(resize::make_backward());
    resize::add_host_engines(engines);
    resize::add_reference_engines(engines);
}

}  // namespace dlprim
