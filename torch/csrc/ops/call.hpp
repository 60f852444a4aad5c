// SPDX-License-Identifier: MIT
// Calls of dlprim's operators on tensors of PyTorch: what kernels written by hand use.
//
//   at::Tensor relu(const at::Tensor& x) {
//       at::Tensor y = at::empty_like(x);
//       call_into({y}, dp::ops::Activation{.activation = "relu"}, {view_of(x)});
//       return y;
//   }
//
// Errors become exceptions of PyTorch (device/errors.hpp). Nothing waits.
#pragma once

#include "device/errors.hpp"
#include "memory/convert.hpp"
#include "memory/view.hpp"
#include "ops/kernels.hpp"

#include <optional>
#include <utility>

namespace dlprim_torch {

using Ints = c10::IntArrayRef;
using Maybe = std::optional<at::Tensor>;

inline bool defined(const Maybe& tensor) {
    return tensor && tensor->defined();
}
/// The tensor, or an undefined one.
inline at::Tensor value(const Maybe& tensor) {
    return tensor.value_or(at::Tensor());
}

/// Where the results of a call go: into the tensors' memory, or hung on storages without memory.
class Outputs {
  public:
    explicit Outputs(const std::vector<at::Tensor>& tensors);
    /// For CallOptions::out; an empty tensor where the call is to make a new one.
    const std::vector<dp::Tensor>& places() const noexcept { return places_; }
    /// Brings the call's results to the tensors.
    void take(const std::vector<dp::Tensor>& results) const;

  private:
    const std::vector<at::Tensor>& tensors_;
    std::vector<dp::Tensor> places_;
    std::vector<bool> done_;
};

/// dp::ops::call() whose results go to `outs`, in their order; further results are dropped. Inputs
/// may be strided views. Outs have the results' types and numbers of elements.
template <typename Options>
void call_into(const std::vector<at::Tensor>& outs, const Options& options,
               const std::vector<dp::Tensor>& inputs, const std::vector<dp::Tensor>& params = {},
               dp::ops::CallOptions how = {}) {
    const Outputs outputs(outs);
    how.out = outputs.places();
    outputs.take(translated([&] { return dp::ops::call(options, inputs, params, how); }));
}

/// Values of p0, p1, ...: doubles, or integers exactly.
struct Scalars : std::vector<dp::Scalar> {
    using std::vector<dp::Scalar>::vector;
    Scalars(const std::vector<dp::Scalar>& values) : std::vector<dp::Scalar>(values) {}
    Scalars(const std::vector<double>& values)
        : std::vector<dp::Scalar>(values.begin(), values.end()) {}
};

/// One generated kernel (docs/pointwise.md): `inputs` are x0, x1, ..., `scalars` p0, p1, ..., and
/// y0, y1, ... go to `outs`. Scalars that are integers leave a program on integers one. Reduced
/// dimensions stay with size 1 in results unless `keep_dim` is false.
void pointwise_into(const std::vector<at::Tensor>& outs, std::string code,
                    const std::vector<at::Tensor>& inputs, const Scalars& scalars = {},
                    bool keep_dim = true);

/// How products of tensors of this type are computed.
dp::Precision precision_of(at::ScalarType type);

/// dp::ops::call() with new tensors of dlprim as results. (It has another name than
/// dp::ops::call(), which a plain call would find by its arguments' namespace.)
template <typename Options>
std::vector<dp::Tensor> results_of(const Options& options, const std::vector<dp::Tensor>& inputs,
                                   const std::vector<dp::Tensor>& params = {},
                                   const dp::ops::CallOptions& how = {}) {
    return translated([&] { return dp::ops::call(options, inputs, params, how); });
}

/// dp::ops::backward(): gradients of inputs and params.
template <typename Options>
std::vector<dp::Tensor> gradients_of(const Options& options, const std::vector<dp::Tensor>& inputs,
                                     const std::vector<dp::Tensor>& params,
                                     const std::vector<dp::Tensor>& output_gradients,
                                     const dp::ops::CallOptions& how = {}) {
    return translated(
        [&] { return dp::ops::backward(options, inputs, params, output_gradients, how); });
}

}  // namespace dlprim_torch
