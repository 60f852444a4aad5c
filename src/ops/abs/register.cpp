// SPDX-License-Identifier: MIT
// Registers what src/ops/abs holds.
#include "ops/abs/operator.hpp"

namespace dlprim {

void register_abs() {
    OperatorRegistry::instance().add(std::make_unique<abs_op::Abs>());
}

}  // namespace dlprim
