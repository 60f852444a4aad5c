// SPDX-License-Identifier: MIT
// What factorisations share. Matrices lie in batches of three dimensions, and each step of an
// algorithm is one or two generated programs over all of a batch. A program covers the whole
// matrix and knows the step by p0, so that the steps of all sizes share a few kernels; a step reads
// one copy of the matrix and writes the other.
#pragma once

#include "fallback/fallback.hpp"
#include "ops/call.hpp"

#include <ATen/ExpandUtils.h>
#include <ATen/native/Resize.h>
#include <c10/core/DeviceGuard.h>

#include <utility>

namespace dlprim_torch {

/// Whether the programs compute with this type.
inline bool factors(const at::Tensor& tensor) {
    return tensor.scalar_type() == at::kFloat || tensor.scalar_type() == at::kDouble;
}

/// [..., m, n] as [batch, m, n].
inline at::Tensor as_batch(const at::Tensor& matrices) {
    const std::int64_t count =
        c10::multiply_integers(matrices.sizes().slice(0, matrices.dim() - 2));
    return matrices.reshape({count, matrices.size(-2), matrices.size(-1)});
}

/// A batch of matrices that steps change.
class Stepped {
  public:
    explicit Stepped(const at::Tensor& matrices)
        : now_(matrices.clone(at::MemoryFormat::Contiguous)), next_(at::empty_like(now_)) {}

    const at::Tensor& value() const { return now_; }
    at::Tensor column(std::int64_t j) const { return now_.narrow(2, j, 1); }
    at::Tensor row(std::int64_t i) const { return now_.narrow(1, i, 1); }
    at::Tensor element(std::int64_t i, std::int64_t j) const { return row(i).narrow(2, j, 1); }

    /// x0 of the program is the batch, and x1, ... are `others`.
    void step(const std::string& code, const std::vector<at::Tensor>& others, std::int64_t at) {
        std::vector<at::Tensor> inputs{now_};
        inputs.insert(inputs.end(), others.begin(), others.end());
        pointwise_into({next_}, code, inputs, {static_cast<double>(at)});
        std::swap(now_, next_);
    }

  private:
    at::Tensor now_, next_;
};

}  // namespace dlprim_torch
