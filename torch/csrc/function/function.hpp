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

    /// What stands for a call's inputs and results. `places`: which of the caller's tensors are the
    /// network's inputs, in their order. `draws`: how many eager calls would draw random numbers;
    /// where any would, the network's last two inputs are their seed and first step. `results`:
    /// tensors of the types, sizes and strides that results have; those that are contiguous stand
    /// for strides that nobody sees. `writes`: results that are written to tensors of the caller,
    /// each with its place there.
    struct Frame {
        std::vector<std::size_t> places;
        int draws = 0;
        std::vector<at::Tensor> results;
        std::vector<std::pair<std::size_t, std::size_t>> writes;
    };
    void set_frame(Frame frame) { frame_ = std::move(frame); }

    /// The results as new tensors. Inputs may be strided views; those of the CPU, which are
    /// numbers, are copied to the device. Does not wait.
    std::vector<at::Tensor> operator()(const std::vector<at::Tensor>& inputs) const;

  private:
    c10::Device device_;
    dp::Function function_;
    Frame frame_;
};

}  // namespace dlprim_torch
