// SPDX-License-Identifier: MIT
// Registers Hardtanh.
#include "ops/hardtanh/operator.hpp"

namespace dlprim {

void register_hardtanh(OperatorRegistry& operators, EngineRegistry&) {
    operators.add(hardtanh::make_operator());
}

}  // namespace dlprim
