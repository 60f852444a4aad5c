// SPDX-License-Identifier: MIT
// Registers the operators that are an expression.
#include "ops/expressions/operator.hpp"

namespace dlprim::expressions {

void register_expressions(OperatorRegistry& operators, EngineRegistry&) {
    for (const Row& row : rows()) operators.add(std::make_unique<ExpressionOperator>(row));
}

}  // namespace dlprim::expressions
