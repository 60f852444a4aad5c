// SPDX-License-Identifier: MIT
// Operators called one at a time on tensors: eager, asynchronous, on the tensors' device.
//
// Every operator of docs/json.md can be called by its type and options; a ready launch is kept by
// problem, so that a second call of the same shapes is a look-up and an enqueue. No call waits.
//
// A result may stay in the layout that its kernel wrote until its memory is asked for
// (dlprim/tensor.hpp says who notices); the next call takes it as it lies. So chains of calls are
// converted no more often than a Net. Tensors of CallOptions::out get row-major results at once.
//
// What calls keep (launches, packed weights, scratch) belongs to the tensors' context and is freed
// with its last user, a Context, a tensor or a net. It is bounded: a context keeps 4096 calls, and
// the one that was used least recently goes first; work under way keeps its memory. The texts of
// options, once parsed, are kept for all contexts, 4096 of them.
//
// Threads: calls may come from several threads at the same time, on one context or on several.
// Calls on one context run one after the other, each as a whole, so a result can be handed to
// another thread as soon as its call has returned. The library does not order the threads
// themselves: a tensor of CallOptions::out, or a running statistic, that one thread's call writes
// must not be used by another's before that call has returned.
#pragma once

#include <dlprim/namespace.hpp>
#include <dlprim/precision.hpp>
#include <dlprim/tensor.hpp>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dlprim::ops {

struct CallOptions {
    bool training = false;  ///< training-mode semantics
    std::string engine;     ///< forced engine, or empty
    /// Forced engines by type, of the operator, of what it is made of and of what its gradient is
    /// made of: type, engine. Where one does not apply, another runs.
    std::vector<std::pair<std::string, std::string>> engines;
    Precision precision = Precision::fp32;  ///< of products
    std::vector<Tensor> out;                ///< write here instead of into new tensors
    std::uint64_t seed = 1, step = 0;       ///< for random operators
};

/// Calls operator `type` with options as in network JSON, e.g.
///   call("Convolution2D", R"({"channels_out": 64, "kernel": 3, "pad": 1})", {x}, {weight, bias})
/// `inputs` are the tensors, `params` the parameters in the operator's order. BatchNorm in training
/// mode updates its running statistics, which are params, in place. Throws Error(invalid_argument).
std::vector<Tensor> call(std::string_view type, std::string_view options_json,
                         const std::vector<Tensor>& inputs, const std::vector<Tensor>& params = {},
                         const CallOptions& options = {});

/// Gradients of call() with respect to inputs and params (in that order; undefined tensors where an
/// operand has none, as integers and running statistics), given the gradients of its outputs.
std::vector<Tensor> backward(std::string_view type, std::string_view options_json,
                             const std::vector<Tensor>& inputs, const std::vector<Tensor>& params,
                             const std::vector<Tensor>& output_gradients,
                             const CallOptions& options = {});

/// A generated kernel from a program over broadcast tensors; the language is docs/pointwise.md's:
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
