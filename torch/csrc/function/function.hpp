// SPDX-License-Identifier: MIT
// A graph of torch.compile as a dp::Function, called on tensors of PyTorch.
#pragma once

#include "common.hpp"

#include <dlprim/function.hpp>

namespace dlprim_torch {

class Function {
  public:
    /// `json` is a network (docs/json.md) for the device of this index. Throws as operators do.
    Function(int device, const std::string& json, const dp::FunctionOptions& options);

    /// The results as new tensors. Inputs may be strided views; those of the CPU, which are
    /// numbers, are copied to the device. Does not wait.
    std::vector<at::Tensor> operator()(const std::vector<at::Tensor>& inputs) const;

  private:
    c10::Device device_;
    dp::Function function_;
};

}  // namespace dlprim_torch
