// SPDX-License-Identifier: MIT
// Eager calls: one operator at a time, on tensors, on the tensors' device.
//
//   const dp::Tensor y = dp::ops::conv2d(x, weight, bias, {.stride = 2, .pad = 1});
//   const auto parts = dp::ops::call(dp::ops::Split{.parts = 3}, {y});
//
// Every operator of docs/json.md can be called, by a struct of its options (dlprim/op_options.hpp)
// or by its type's name and its options as JSON text. The first call of a problem (type, options,
// shapes, dtypes, layouts) plans and compiles; its launches are cached, so that a second call is a
// look-up and an enqueue, and builds no text.
//
// Waiting: no call waits for the device.
//
// Layout: a result may stay in its engine's layout until somebody asks for its memory
// (dlprim/tensor.hpp), and the next call reads it in that layout. So a chain of calls converts
// layouts no more often than a Net. Results in tensors of CallOptions::out are row-major at once.
//
// Ownership: cached launches, packed weights and scratch memory belong to the tensors' context and
// are freed with its last Context, tensor or net. A context caches 4096 calls and drops the one
// that was used least recently; work under way keeps its memory. Options are cached for all
// contexts together, 4096 of them for each struct, and 4096 texts.
//
// Threads: several threads may call at the same time, on one context or on several. Calls on one
// context are enqueued one after the other, each as a whole, so that a result can be handed to
// another thread as soon as its call has returned. The library does not order threads: while a call
// writes to a tensor of CallOptions::out or to a running statistic, no other thread may use it.
#pragma once

#include <dlprim/namespace.hpp>
#include <dlprim/op_options.hpp>
#include <dlprim/precision.hpp>
#include <dlprim/tensor.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dlprim::ops {

struct CallOptions {
    bool training = false;  ///< training-mode semantics
    std::string engine;     ///< the engine that must be used; empty: chosen
    /// Engines as pairs of an operator's type and an engine's name, for the operator, for those
    /// that it expands to, and for those of its gradient. Where one does not apply, another runs.
    std::vector<std::pair<std::string, std::string>> engines;
    Precision precision = Precision::fp32;  ///< of products (dlprim/precision.hpp)
    std::vector<Tensor> out;                ///< results are written here instead of to new tensors
    std::uint64_t seed = 1, step = 0;       ///< of random operators
};

/// A struct of dlprim/op_options.hpp.
template <typename T>
concept OperatorOptions = requires {
    std::string_view(T::type);
};

/// Calls the operator whose options these are, for example
///   call(Convolution2D{.channels_out = 64, .kernel = 3, .pad = 1}, {x}, {weight, bias})
/// `inputs` are the operator's inputs, and `params` its parameters, in the order of docs/json.md.
/// Returns its outputs. BatchNorm in training mode updates its running statistics, which are among
/// `params`, in place. Throws Error(invalid_argument) for what does not fit, strided views among it
/// (Tensor::to_contiguous() copies one).
template <OperatorOptions Options>
std::vector<Tensor> call(const Options& options, const std::vector<Tensor>& inputs,
                         const std::vector<Tensor>& params = {}, const CallOptions& how = {});

/// The same operators by name, with options as in network JSON: for programs that read either from
/// a file. `call("Softmax", R"({"log": true})", {x})` is `call(Softmax{.log = true}, {x})`.
std::vector<Tensor> call(std::string_view type, std::string_view options_json,
                         const std::vector<Tensor>& inputs, const std::vector<Tensor>& params = {},
                         const CallOptions& how = {});

/// Gradients of call() with respect to inputs and params (in that order; undefined tensors where an
/// operand has none, as integers and running statistics), given the gradients of its outputs.
template <OperatorOptions Options>
std::vector<Tensor> backward(const Options& options, const std::vector<Tensor>& inputs,
                             const std::vector<Tensor>& params,
                             const std::vector<Tensor>& output_gradients,
                             const CallOptions& how = {});
std::vector<Tensor> backward(std::string_view type, std::string_view options_json,
                             const std::vector<Tensor>& inputs, const std::vector<Tensor>& params,
                             const std::vector<Tensor>& output_gradients,
                             const CallOptions& how = {});

/// Which parameters call() writes in training mode, by index into its `params`: the running
/// statistics of BatchNorm. Opens no device. Throws Error(invalid_argument) for an unknown type or
/// options that do not fit it.
std::vector<std::size_t> written_params(std::string_view type, std::string_view options_json);

/// Runs one kernel that is generated from a program in the language of docs/pointwise.md over
/// broadcast tensors, for example
///   pointwise("y0 = sum[0,2,3](x0); y1 = sum[0,2,3](x0*x0)", {x})
std::vector<Tensor> pointwise(std::string_view code, const std::vector<Tensor>& inputs,
                              const std::vector<double>& scalars = {}, const CallOptions& how = {});

// Shorthands of common calls, which return the one output. Of conv2d() and inner_product() the
// options channels_out, kernel and outputs are the weight's where they are not set, and whether
// there is a bias is told by the arguments.
Tensor conv2d(const Tensor& x, const Tensor& weight, const Convolution2D& options = {},
              const CallOptions& how = {});
Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias,
              const Convolution2D& options = {}, const CallOptions& how = {});
Tensor inner_product(const Tensor& x, const Tensor& weight, const InnerProduct& options = {},
                     const CallOptions& how = {});
Tensor inner_product(const Tensor& x, const Tensor& weight, const Tensor& bias,
                     const InnerProduct& options = {}, const CallOptions& how = {});
Tensor matmul(const Tensor& a, const Tensor& b, const MatMul& options = {},
              const CallOptions& how = {});
Tensor pooling2d(const Tensor& x, const Pooling2D& options, const CallOptions& how = {});
Tensor add(const Tensor& a, const Tensor& b);
Tensor relu(const Tensor& x);
Tensor softmax(const Tensor& x, const Softmax& options = {}, const CallOptions& how = {});

}  // namespace dlprim::ops
