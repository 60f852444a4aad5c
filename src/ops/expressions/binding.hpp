// SPDX-License-Identifier: MIT
// The expressions of a row as those of the pointwise language: names become inputs and scalars.
#pragma once

#include "engine/pointwise/program.hpp"
#include "ops/expressions/row.hpp"

#include <span>
#include <string>
#include <vector>

namespace dlprim::expressions {

/// Input i of a bound expression is operand i of the row (tensors, then the parameter). Two more
/// are the result's gradient and the result.
class Binding {
  public:
    /// `attrs` are resolved. `count` is the number of elements over which the row's reduction runs.
    Binding(const Row& row, const Attrs& attrs, std::int64_t count);

    int operands() const { return operands_; }
    int dy() const { return operands_; }
    int y() const { return operands_ + 1; }
    /// The values of scalars.
    const Doubles& scalars() const { return scalars_; }

    /// What is computed for each element, before it is reduced.
    pointwise::ExprPtr value() const;
    /// The gradient of an operand for each element, or nullptr if it is zero everywhere.
    pointwise::ExprPtr gradient(int operand) const;

  private:
    pointwise::ExprPtr parsed(const std::string& text) const;

    Formula formula_;
    bool reduced_;
    int operands_;
    std::string names_;  ///< statements that define them
    Doubles scalars_;
};

/// A Pointwise program of bound expressions that has only the inputs and scalars they use.
struct Code {
    std::string text;
    std::vector<int> inputs;  ///< of the binding: dy and y come first
    Doubles scalars;
};
/// Each expression is an output, which is summed over the axes where there are any.
Code code_of(const Binding& binding, std::span<const pointwise::ExprPtr> expressions,
             const Ints& summed_axes = {});

}  // namespace dlprim::expressions
