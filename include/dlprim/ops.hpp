// SPDX-License-Identifier: MIT
// Eager calls: one operator at a time, on tensors, on the tensors' device.
//
// Every operator of docs/json.md can be called by its type and options. The first call of a problem
// (type, options, shapes, dtypes, layouts) plans and compiles; its launches are cached, so that a
// second call is a look-up and an enqueue.
//
// Waiting: no call waits for the device.
//
// Layout: a result may stay in its engine's layout until somebody asks for its memory
// (dlprim/tensor.hpp), and the next call reads it in that layout. So a chain of calls converts
// layouts no more often than a Net. Results in tensors of CallOptions::out are row-major at once.
//
// Ownership: cached launches, packed weights and scratch memory belong to the tensors' context and
// are freed with its last Context, tensor or net. A context caches 4096 calls and drops the one
// that was used least recently; work under way keeps its memory. Parsed texts of options are cached
// for all contexts together, 4096 of them.
//
// Threads: several threads may call at the same time, on one context or on several. Calls on one
// context are enqueued one after the other, each as a whole, so that a result can be handed to
// another thread as soon as its call has returned. The library does not order threads: while a call
// writes to a tensor of CallOptions::out or to a running statistic, no other thread may use it.
#pragma once

#include <dlprim/namespace.hpp>
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

/// Calls operator `type` with options as in network JSON, for example
///   call("Convolution2D", R"({"channels_out": 64, "kernel": 3, "pad": 1})", {x}, {weight, bias})
/// `inputs` are the operator's inputs, and `params` its parameters, in the order of docs/json.md.
/// BatchNorm in training mode updates its running statistics, which are among `params`, in place.
/// Throws Error(invalid_argument) for what does not fit, strided views among it
/// (Tensor::to_contiguous() copies one).
std::vector<Tensor> call(std::string_view type, std::string_view options_json,
                         const std::vector<Tensor>& inputs, const std::vector<Tensor>& params = {},
                         const CallOptions& options = {});

/// Gradients of call() with respect to inputs and params (in that order; undefined tensors where an
/// operand has none, as integers and running statistics), given the gradients of its outputs.
std::vector<Tensor> backward(std::string_view type, std::string_view options_json,
                             const std::vector<Tensor>& inputs, const std::vector<Tensor>& params,
                             const std::vector<Tensor>& output_gradients,
                             const CallOptions& options = {});

/// Which parameters call() writes in training mode, by index into its `params`: the running
/// statistics of BatchNorm. Opens no device. Throws Error(invalid_argument) for an unknown type or
/// options that do not fit it.
std::vector<std::size_t> written_params(std::string_view type, std::string_view options_json);

/// Runs one kernel that is generated from a program in the language of docs/pointwise.md over
/// broadcast tensors, for example
///   pointwise("y0 = sum[0,2,3](x0); y1 = sum[0,2,3](x0*x0)", {x})
std::vector<Tensor> pointwise(std::string_view code, const std::vector<Tensor>& inputs,
                              const std::vector<double>& scalars = {},
                              const CallOptions& options = {});

// Shorthands of common calls.
Tensor relu(const Tensor& x);
Tensor add(const Tensor& a, const Tensor& b);
Tensor matmul(const Tensor& a, const Tensor& b);
Tensor softmax(const Tensor& x);

}  // namespace dlprim::ops
