// SPDX-License-Identifier: MIT
// Registers Cast and its engines.
#include "ops/cast/engines.hpp"
#include "ops/cast/operator.hpp"

namespace dlprim {

void register_cast(OperatorRegistry& operators, EngineRegistry& engines) {
    operators.add(cast::make_operator());
    cast::add_convert_engine(engines);
    cast::add_narrow_engine(engines);
    cast::add_host_engine(engines);
}

}  // namespace dlprim
