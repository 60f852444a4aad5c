// SPDX-License-Identifier: MIT
// The arguments of a boxed call by name, and the text of a row's expression for them.
#pragma once

#include "common.hpp"
#include "ops/dims.hpp"
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
    /// The operator's name without namespace and overload: "max".
    std::string_view name() const;

    /// Takes the arguments from the stack and puts `results` there.
    void give_back(std::vector<at::Tensor> results);

  private:
    const c10::FunctionSchema& schema_;
    torch::jit::Stack& stack_;
    std::vector<at::Tensor> inputs_, outs_;
};

/// What an expression needs to know of a call beside its arguments.
struct Circumstances {
    at::ScalarType common;   ///< the type in which operands meet
    std::int64_t numel = 0;  ///< elements of the result: [numel]
    std::string axes = {};   ///< what stands for [dim]
    at::Tensor result = {};  ///< what the row's second expression reads
    bool second = false;     ///< whether that is wanted
};

/// The expression of a call, and what its x0, x1, ... and p0, p1, ... are.
struct Program {
    std::string code;
    std::vector<at::Tensor> inputs;
    std::vector<dp::Scalar> scalars;
    bool goes_on = false;  ///< whether the row has a second expression, of its result
};

/// The type in which a call's operands meet, as PyTorch promotes them. Throws for types that the
/// row refuses or the device does not have.
at::ScalarType common_type(const Row& row, const Arguments& arguments);

/// The row's expression for these arguments. Numbers, and tensors of the CPU without dimensions,
/// become scalars.
Program program_of(const Row& row, const Arguments& arguments, const Circumstances& of);

/// The dimensions that the argument "dim" of a reduction names; without it, or with an empty list,
/// all of them.
Dims reduced_dims(const Arguments& arguments, std::int64_t rank);

/// Whether the device can serve tensors of these types and ranks at all; else the CPU does.
bool serves(const Arguments& arguments);

/// The device of the call's tensors.
std::optional<c10::Device> device_of(const Arguments& arguments);

}  // namespace dlprim_torch
