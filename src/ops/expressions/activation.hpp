// SPDX-License-Identifier: MIT
// Activation: a function of one variable from the table engine/activations.hpp, and its options.
//
// It stays a separate node until it is lowered, so that the planner can fuse it into the operator
// before it.
#pragma once

#include "ops/expressions/row.hpp"

namespace dlprim::expressions {

/// The options as activation, alpha and beta, with the function's defaults. Throws
/// Error(invalid_argument) on a parameter that belongs to another function, or is given twice.
Attrs resolve_activation(const Attrs& attrs);
/// Of resolved options, like what follows.
Formula activation_formula(const Attrs& attrs);
/// The gradient from the result: the operands are dy and y. Throws Error(invalid_argument) for
/// functions whose derivative does not follow from their value.
Formula activation_backward_formula(const Attrs& attrs);
std::optional<EpilogueStage> activation_epilogue(const Attrs& attrs);

}  // namespace dlprim::expressions
