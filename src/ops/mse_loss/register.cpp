// SPDX-License-Identifier: MIT
// Registers MSELoss.
#include "ops/mse_loss/operator.hpp"

namespace dlprim {

void register_mse_loss(OperatorRegistry& operators, EngineRegistry&) {
    operators.add(mse_loss::make_operator());
}

}  // namespace dlprim
