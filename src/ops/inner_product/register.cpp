// SPDX-License-Identifier: MIT
// Registers InnerProduct; src/ops/matmul/register.cpp registers its engines.
#include "ops/inner_product/operator.hpp"

namespace dlprim {

void register_inner_product(OperatorRegistry& operators, EngineRegistry&) {
    operators.add(inner_product::make_operator());
}

}  // namespace dlprim
