// SPDX-License-Identifier: MIT
// Registers Concat and its engines.
#include "ops/concat/engines.hpp"
#include "ops/concat/operator.hpp"
#include "ops/concat/options.hpp"

namespace dlprim {

void register_concat(OperatorRegistry& operators, EngineRegistry& engines) {
    operators.add(concat::make_operator());
    concat::add_join_engine(engines);
    add_copy_engines(engines, concat::movement);
}

}  // namespace dlprim
