// SPDX-License-Identifier: MIT
// The arguments of a boxed call by name, and the text of a row's expression for them.
#pragma once

#include "common.hpp"
#include "ops/row.hpp"

#include <string_view>

namespace dlprim_torch {

/// The arguments of one call, as they lie on the stack.
class Arguments {
  public:
    Arguments(const c10::OperatorHandle& op, torch::jit::Stack& stack);

    /// The argument's value; nullptr if the operator has none of that name.
    const c10::IValue* find(std::string_view name) const;
    /// Tensors that the operator writes, in the order of its arguments: of out= and in-place calls.
    const std::vector<at::Tensor>& outs() const noexcept { return outs_; }
    /// Tensors that it reads.
    const std::vector<at::Tensor>& inputs() const noexcept { return inputs_; }
    std::size_t returns() const noexcept { return schema_.returns().size(); }

    /// Takes the arguments from the stack and puts `results` there.
    void give_back(std::vector<at::Tensor> results);

  private:
    const c10::FunctionSchema& schema_;
    torch::jit::Stack& stack_;
    std::vector<at::Tensor> inputs_, outs_;
};

/// The expression of a call, and what its x0, x1, ... and p0, p1, ... are.
struct Program {
    std::string code;
    std::vector<at::Tensor> inputs;
    std::vector<double> scalars;
};

/// The row's expression for these arguments. Numbers, and tensors of the CPU without dimensions,
/// become scalars; `axes` stands for [dim]. `common` is the type in which operands meet.
Program program_of(const Row& row, const Arguments& arguments, at::ScalarType common,
                   const std::string& axes = {});

/// Whether the device can serve tensors of these types and ranks at all; else the CPU does.
bool serves(const Arguments& arguments);

}  // namespace dlprim_torch
