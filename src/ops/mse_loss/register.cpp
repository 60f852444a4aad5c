// SPDX-License-Identifier: MIT
// Registers what src/ops/mse_loss holds.
#include "ops/mse_loss/operator.hpp"

namespace dlprim {

void register_mse_loss() {
    OperatorRegistry::instance().add(std::make_unique<mse_loss::MSELoss>());
}

}  // namespace dlprim
