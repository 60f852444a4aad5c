// SPDX-License-Identifier: MIT
// Eager calls: one operator at a time, on tensors, on the tensors' device.
//
//   const dp::Tensor y = dp::ops::conv2d(x, weight, bias, {.stride = 2, .pad = 1});
//   const auto parts = dp::ops::call(dp::ops::Split{.parts = 3}, {y});
//
// Every operator of docs/json.md can be called, by a struct of its options (dlprim/op_options.hpp)
// or by its type's name and its options as JSON text. The first call of a problem (type, options,
// shapes, dtypes, layouts) plans and compiles. Its launches are cached, so that a later call of the
// same problem only looks them up and enqueues them.
//
// Waiting: no call waits for the device. A kernel that finds an index out of range is reported by
// the next call that waits, such as Tensor::copy_to_host().
//
// Views: all tensors may be strided views (dlprim/tensor.hpp). A view that an operator cannot read
// or write as it lies is copied on the device, in memory from the context's pool.
//
// Layout: a result may stay in its engine's layout until the program reaches its memory
// (dlprim/tensor.hpp), and the next call reads it in that layout. So a chain of calls converts
// layouts no more often than a Net. Results in tensors of CallOptions::out lie as those say when
// the call's work is done.
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
#include <dlprim/scalar.hpp>
#include <dlprim/tensor.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dlprim::ops {

struct CallOptions {
    /// Whether the operator computes as in training: batch statistics and dropout, and convolutions
    /// that round less, since batch norms amplify it in gradients (docs/engines/winograd.md).
    bool training = false;
    /// The engine that call() must use; where it does not apply the call throws. Empty: the library
    /// chooses. backward() ignores it.
    std::string engine;
    /// Engines as pairs of an operator's type and an engine's name, for the operator, for those
    /// that it expands to, and for those of its gradient. Where one does not apply, another runs.
    std::vector<std::pair<std::string, std::string>> engines;
    Precision precision = Precision::fp32;  ///< of products (dlprim/precision.hpp)
    /// Tensors to which results are written: of the output's shape and type, in the order of the
    /// outputs. An output that has no tensor here, or an empty one, gets a new tensor. Such a
    /// tensor may be an input or a parameter of the same call, or overlap one: the result is what a
    /// new tensor would hold. Elementwise operators work in place where both are the same elements;
    /// otherwise the result is made in memory of its own and copied. Two of these tensors must not
    /// overlap, nor two elements of one: that throws Error(invalid_argument). Only for two strided
    /// views whose elements alternate this is not checked.
    std::vector<Tensor> out;
    /// The random numbers of dropout depend on the seed, the step and the operator's `stream`
    /// alone. A program counts `step` up to get other numbers.
    std::uint64_t seed = 1, step = 0;
    /// Which results are made: of call() the outputs, of backward() the gradients of inputs and
    /// parameters, in their order, one element each. Others are empty tensors, and what only they
    /// need is not computed. Empty: all.
    std::vector<bool> wanted;
    /// The values of p0, p1, ... of a Pointwise program, for call() and backward(), in place of its
    /// option `scalars`. They are arguments of the launch: a call in which only they differ runs
    /// the same kernel, where other values of the option are another problem, which is planned
    /// first. A program on doubles gets them as doubles, one on integers gets 64-bit integers
    /// exactly, and any other gets them rounded to float. Where all tensors and all scalars are
    /// integers, so are the results.
    std::vector<Scalar> scalars;
};

/// A struct of dlprim/op_options.hpp.
template <typename T>
concept OperatorOptions = requires {
    std::string_view(T::type);
};

/// Calls the operator whose options these are, for example
///   call(Convolution{.channels_out = 64, .kernel = 3, .pad = 1}, {x}, {weight, bias})
/// `inputs` are the operator's inputs, and `params` its parameters, in the order of docs/json.md.
/// All must be on one context, which that of the first tensor of `out` is where there are none.
/// Returns its outputs. BatchNorm in training mode updates its running
/// statistics, which are among `params`, in place. Throws Error(invalid_argument) for tensors or
/// options that do not fit.
template <OperatorOptions Options>
std::vector<Tensor> call(const Options& options, const std::vector<Tensor>& inputs,
                         const std::vector<Tensor>& params = {}, const CallOptions& how = {});

/// The same operators by name, with options as in network JSON: for programs that read either from
/// a file. `call("Softmax", R"({"log": true})", {x})` is `call(Softmax{.log = true}, {x})`.
std::vector<Tensor> call(std::string_view type, std::string_view options_json,
                         const std::vector<Tensor>& inputs, const std::vector<Tensor>& params = {},
                         const CallOptions& how = {});

/// Gradients of call() with respect to inputs and params, in that order, given the gradients of its
/// outputs. The tensor of an operand without a gradient, such as integers or running statistics, is
/// empty (Tensor::defined() is false). Throws as call() does, and Error(unsupported) for an
/// operator without a gradient.
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

/// What the structs of dlprim/op_options.hpp declare, as a JSON object by the operators' types: of
/// each its `group`, what it `takes`, the `other_names` that it had before, of an alias its
/// operator as `alias_of`, and `options`, a list of objects with `name`, `kind` ("boolean",
/// "integer", "number", "text", "integers", "numbers", "texts"), `meaning`, `required`, and where
/// they apply `default`, `also`, `choices`, `least` and `most`. Opens no device.
std::string declarations();

/// Runs one kernel that is generated from a program in the language of docs/pointwise.md, in which
/// `inputs` are x0, x1, ... and are broadcast, and `scalars` are p0, p1, .... For example
///   pointwise("y0 = sum[0,2,3](x0); y1 = sum[0,2,3](x0*x0)", {x})
/// Returns y0, y1, .... Throws Error(invalid_argument) for a program that does not parse or fit.
/// The scalars are handed over as CallOptions::scalars are, so that other values cost nothing. For
/// integers, types of results or a shape use
///   call(Pointwise{.code = "y0 = x0 * p0", .dtypes = {DType::i64}}, {x}, {}, {.scalars = {n}})
std::vector<Tensor> pointwise(std::string_view code, const std::vector<Tensor>& inputs,
                              const std::vector<double>& scalars = {}, const CallOptions& how = {});

/// Copies the elements of `from` to `to`, converted to its type as Cast does. Both may be strided
/// views. `from` is broadcast to the shape of `to`. Where their memory overlaps, `to` gets what
/// `from` held before the call. The copy runs on the device and the call does not wait, except
/// between two contexts: then the elements go through the host, and the call waits for both
/// devices. Throws Error(invalid_argument) for empty tensors, shapes that do not fit, and a view
/// `to` in which several elements are the same memory, and Error(unsupported) for a conversion that
/// the device cannot compute, such as of double where it has none.
void copy(const Tensor& from, const Tensor& to);

// Shorthands of common calls, which return the only output. In conv2d() and inner_product() the
// options channels_out, kernel and outputs come from the weight's shape where they are not set.
// Their option `bias` is ignored: a bias is added where one is given.
Tensor conv2d(const Tensor& x, const Tensor& weight, const Convolution& options = {},
              const CallOptions& how = {});
Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias,
              const Convolution& options = {}, const CallOptions& how = {});
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
