// SPDX-License-Identifier: MIT
// Registers NLLLoss.
#include "ops/nll_loss/operator.hpp"

namespace dlprim {

void register_nll_loss(OperatorRegistry& operators, EngineRegistry&) {
    operators.add(nll_loss::make_operator());
    operators.add(nll_loss::make_backward());
}

}  // namespace dlprim
