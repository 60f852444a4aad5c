// SPDX-License-Identifier: MIT
// The value of an expression in double, for oracles. It walks the tree that parse() made and takes
// functions from the standard library, so that it shares nothing with what makes kernels.
#pragma once

#include "engine/pointwise/program.hpp"

#include <span>

namespace dlprim::expressions {

/// The operands of an expression. Where they are not `wide`, comparisons are of floats, as devices
/// compare.
struct Operands {
    std::span<const double> inputs, scalars;
    bool wide = true;
};

/// Throws Error(unsupported) for functions that no row of the operators has.
double interpret(const pointwise::Expr& expr, const Operands& operands);

}  // namespace dlprim::expressions
