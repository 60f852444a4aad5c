// SPDX-License-Identifier: MIT
// Eager calls: one operator as a small plan, kept by context and problem.
//
// Results stay in the layout that their engine wrote (runtime/deferred.hpp), and calls take their
// inputs and output gradients as they lie: a chain of calls is converted no more often than a
// network is. Parameters and `out` tensors are plain.
#pragma once

#include "base/attrs.hpp"
#include "plan/plan.hpp"

#include <dlprim/ops.hpp>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dlprim {

/// Options of calls. Equal ones have one id, by which calls are looked up; no other ever has it.
struct EagerOptions {
    Attrs attrs;
    std::uint64_t id = 0;
};
std::shared_ptr<const EagerOptions> eager_options(const Attrs& attrs);

/// What dp::ops::call and dp::ops::backward do, options parsed.
std::vector<Tensor> eager_call(std::string_view type, const EagerOptions& options,
                               std::span<const Tensor> inputs, std::span<const Tensor> params,
                               const ops::CallOptions& call);
std::vector<Tensor> eager_backward(std::string_view type, const EagerOptions& options,
                                   std::span<const Tensor> inputs, std::span<const Tensor> params,
                                   std::span<const Tensor> output_gradients,
                                   const ops::CallOptions& call);

/// The plan that such a call runs; `output_gradients` empty: of eager_call. For tests and reports;
/// valid until the next call.
const Plan& eager_plan(std::string_view type, const Attrs& options, std::span<const Tensor> inputs,
                       std::span<const Tensor> params, std::span<const Tensor> output_gradients,
                       const ops::CallOptions& call);

}  // namespace dlprim
