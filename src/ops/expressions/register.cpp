// SPDX-License-Identifier: MIT
// Registers the operators that are an expression.
#include "ops/expressions/operator.hpp"

namespace dlprim {

void register_expressions(OperatorRegistry& operators, EngineRegistry&) {
    for (const expressions::Row& row : expressions::rows())
        operators.add(std::make_unique<expressions::ExpressionOperator>(row));
}

}  // namespace dlprim
