// SPDX-License-Identifier: MIT
// Registers what src/ops/nll_loss holds.
#include "ops/nll_loss/operator.hpp"

namespace dlprim {

void register_nll_loss() {
    OperatorRegistry::instance().add(std::make_unique<nll_loss::NLLLoss>());
}

}  // namespace dlprim
