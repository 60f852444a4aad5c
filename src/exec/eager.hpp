// SPDX-License-Identifier: MIT
// Eager calls: one operator as a small plan, or a function of several as one plan, cached by
// context and problem.
//
// Results stay in the layout that their engine wrote (runtime/deferred.hpp), and calls accept
// inputs and output gradients in any layout. So a sequence of calls needs no more conversions than
// a network. Parameters and `out` tensors are plain.
#pragma once

#include "base/attrs.hpp"
#include "graph/description.hpp"
#include "plan/plan.hpp"

#include <dlprim/ops.hpp>

#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dlprim {

/// Options of calls. Equal options have the same id, by which calls are looked up, and different
/// options never share an id.
struct EagerOptions {
    Attrs attrs;
    std::uint64_t id = 0;
};
std::shared_ptr<const EagerOptions> eager_options(const Attrs& attrs);

/// Implements dp::ops::call and dp::ops::backward, with parsed options.
std::vector<Tensor> eager_call(std::string_view type, const EagerOptions& options,
                               std::span<const Tensor> inputs, std::span<const Tensor> params,
                               const ops::CallOptions& call);
std::vector<Tensor> eager_backward(std::string_view type, const EagerOptions& options,
                                   std::span<const Tensor> inputs, std::span<const Tensor> params,
                                   std::span<const Tensor> output_gradients,
                                   const ops::CallOptions& call);

/// A graph of operators on tensors of the caller: dp::Function.
struct EagerFunction {
    std::string name;  ///< in messages
    NetDescription description;
    /// Inputs that seldom change: what is packed or folded of them is kept until they do.
    std::set<std::string, std::less<>> constants;
    std::shared_ptr<const EagerOptions> options;  ///< of this function alone
};
/// Options that no other call has.
std::shared_ptr<const EagerOptions> unique_options();
/// Calls it. `inputs` are the description's inputs without constants; `params` are the constants
/// and then the operators' own parameters. All in the order of the description.
std::vector<Tensor> eager_function(const EagerFunction& function, std::span<const Tensor> inputs,
                                   std::span<const Tensor> params, const ops::CallOptions& call);
/// Drops the plans of a function that will not be called again.
void forget_function(const Context& context, const EagerFunction& function);

/// The plan that such a call runs. Empty `output_gradients` mean eager_call. For tests and reports.
/// Valid until the next call.
const Plan& eager_plan(std::string_view type, const Attrs& options, std::span<const Tensor> inputs,
                       std::span<const Tensor> params, std::span<const Tensor> output_gradients,
                       const ops::CallOptions& call);

}  // namespace dlprim
