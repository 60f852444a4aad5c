// SPDX-License-Identifier: MIT
// Function: a graph of operators on named tensors, planned as a whole and called on the caller's
// tensors. It is to an eager call (dlprim/ops.hpp) what a network is to an operator: layouts,
// fusions and scratch memory are settled for all operators together.
//
//   const dp::Function f(context, R"({
//       "inputs": [{"name": "x", "shape": [8, 64]}, {"name": "w", "shape": [64, 10]}],
//       "operators": [{"name": "product", "type": "MatMul", "inputs": ["x", "w"], "outputs":
//       ["p"]},
//                     {"name": "relu", "type": "Activation", "inputs": ["p"], "outputs": ["y"],
//                      "options": {"activation": "relu"}}],
//       "outputs": ["y"]})", {.constants = {"w"}});
//   const std::vector<dp::Tensor> y = f({x, w});
//
// The text is a network's (docs/json.md). Beside the operators listed there it may name those of
// eager calls (dlprim/op_options.hpp), such as SoftmaxBackward, and AttentionForward,
// AttentionBackward, BatchNormTraining and EmbeddingBackward. Losses mean nothing here.
//
// An operator with "gradients": [0, 2] makes, in place of its results, the gradients of these of
// its inputs and parameters. Its inputs are the operator's, its parameters, and the gradient of its
// first result:
//
//   {"name": "g", "type": "GroupNorm", "inputs": ["x", "weight", "bias", "dy"],
//    "outputs": ["dx", "dweight", "dbias"], "options": {"num_groups": 2}, "gradients": [0, 1, 2]}
//
// What it needs of the results it computes again.
//
// Ownership: a function owns its plans, of which there is one for each set of shapes and layouts of
// inputs, made at the first call. They lie in the context's cache of eager calls, which drops those
// that were used least recently, and end with the function. It owns no parameters.
//
// Threads, waiting and layouts are as for eager calls: several threads may call one function, no
// call waits for the device, inputs may be strided views, and a result may stay in its engine's
// layout until the program reaches its memory.
#pragma once

#include <dlprim/context.hpp>
#include <dlprim/ops.hpp>
#include <dlprim/precision.hpp>
#include <dlprim/tensor.hpp>

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dlprim {

struct FunctionOptions {
    std::string name = "function";  ///< in messages
    /// Names of inputs that seldom change, such as weights in inference. What is packed or folded
    /// of them is kept until the library sees that their memory was written to.
    std::vector<std::string> constants = {};
    /// Whether operators compute as in training (ops::CallOptions::training).
    bool training = false;
    Precision precision = Precision::fp32;  ///< of operators whose JSON sets none
    /// Engines as pairs of an operator's type and an engine's name, as in ops::CallOptions.
    std::vector<std::pair<std::string, std::string>> engines = {};
};

class Function {
  public:
    /// Throws an Error that names the operator and says what is wrong with it, checked for the
    /// shapes that the text declares. Kernels are compiled at the first call.
    Function(const Context& context, std::string_view json, const FunctionOptions& options = {});
    ~Function();
    Function(Function&&) noexcept;
    Function& operator=(Function&&) noexcept;

    const Context& context() const;
    /// The inputs in the order in which a call takes them: those of the text, then the parameters
    /// of operators that the text does not give as inputs.
    const std::vector<std::string>& input_names() const;
    /// The outputs in the order in which a call returns them.
    const std::vector<std::string>& output_names() const;

    /// Enqueues the operators and returns the results. Shapes may differ from the declared ones;
    /// new ones are planned. `seed` and `step` are those of random numbers (ops::CallOptions).
    /// `out` has tensors for results, or empty ones. Throws Error(invalid_argument) for another
    /// number of tensors, a type other than declared, or shapes that do not fit.
    std::vector<Tensor> operator()(std::span<const Tensor> inputs, std::uint64_t seed = 1,
                                   std::uint64_t step = 0,
                                   const std::vector<Tensor>& out = {}) const;
    std::vector<Tensor> operator()(std::initializer_list<Tensor> inputs) const {
        return (*this)(std::span(inputs.begin(), inputs.size()));
    }

  private:
    class Impl;
    const Impl& impl() const;
    std::unique_ptr<const Impl> impl_;  ///< null when moved from
};

}  // namespace dlprim
