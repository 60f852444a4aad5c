// SPDX-License-Identifier: MIT
// Registers what src/ops/cast holds.
#include "ops/cast/operator.hpp"

namespace dlprim {

void register_cast() {
    OperatorRegistry::instance().add(std::make_unique<cast::Cast>());
    EngineRegistry::instance().add(cast::make_convert());
    EngineRegistry::instance().add(cast::make_host());
}

}  // namespace dlprim
