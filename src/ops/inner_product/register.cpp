// SPDX-License-Identifier: MIT
// Registers InnerProduct; src/ops/matmul/register.cpp registers its engines.
#include "ops/inner_product/operator.hpp"

namespace dlprim {

void register_inner_product() {
    OperatorRegistry::instance().add(std::make_unique<inner_product::Operator>());
}

}  // namespace dlprim
