// SPDX-License-Identifier: MIT
// Registers what src/ops/softmax holds.
#include "ops/softmax/operator.hpp"

namespace dlprim {

void register_softmax() {
    OperatorRegistry::instance().add(std::make_unique<softmax::Softmax>());
}

}  // namespace dlprim
