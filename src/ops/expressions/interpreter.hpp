// SPDX-License-Identifier: MIT
// The value of an expression in double, for oracles. It walks the tree that parse() made and takes
// functions from the standard library, so that it shares nothing with what makes kernels.
#pragma once

#include "engine/pointwise/program.hpp"

#include <cstddef>
#include <span>
#include <vector>

namespace dlprim::expressions {

/// The operands of an expression. Where they are not `wide`, comparisons are of floats, as devices
/// compare.
struct Operands {
    std::span<const double> inputs, scalars;
    bool wide = true;
};

/// An expression whose functions have been found.
class Interpreter {
  public:
    /// Throws Error(unsupported) for functions that no row of the operators has.
    explicit Interpreter(const pointwise::Expr& expr);
    double operator()(const Operands& operands) const;

  private:
    enum class Kind { constant, input, scalar, select, fma, comparison, function };
    double argument(std::size_t i, const Operands& operands) const;

    Kind kind_;
    double value_ = 0;        ///< of a constant
    std::size_t number_ = 0;  ///< of an input or a scalar
    double (*function_)(double a, double b) = nullptr;
    std::vector<Interpreter> arguments_;
};

}  // namespace dlprim::expressions
