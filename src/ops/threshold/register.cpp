// SPDX-License-Identifier: MIT
// Registers Threshold.
#include "ops/threshold/operator.hpp"

namespace dlprim {

void register_threshold(OperatorRegistry& operators, EngineRegistry&) {
    operators.add(threshold::make_operator());
}

}  // namespace dlprim
