// SPDX-License-Identifier: MIT
// See call.hpp.
#include "ops/call.hpp"

#include <algorithm>
#include <cmath>

namespace dlprim_torch {

std::vector<dp::Tensor> readable(std::vector<dp::Tensor> inputs) {
    if constexpr (!reads_views)
        for (dp::Tensor& input : inputs)
            if (input.defined()) input = plain(input);
    return inputs;
}

Outputs::Outputs(const std::vector<at::Tensor>& tensors)
    : tensors_(tensors), places_(tensors.size()), done_(tensors.size(), false) {
    for (std::size_t i = 0; i < tensors.size(); ++i) {
        const at::Tensor& tensor = tensors[i];
        // A storage without memory gets the result as the engine wrote it.
        if (is_whole(tensor) && memory_of(tensor).fresh()) continue;
        dp::Tensor place = view_of(tensor);
        if (!reads_views && !place.contiguous()) continue;
        places_[i] = std::move(place);
        done_[i] = true;
    }
}

void Outputs::take(const std::vector<dp::Tensor>& results) const {
    for (std::size_t i = 0; i < tensors_.size(); ++i)
        if (!done_[i]) give(tensors_[i], results[i]);
}

namespace {

/// As arguments of the launch, where the library takes them so: other values are then no other
/// problem. Among integers whole numbers are integers, so that results are exact.
template <typename How>
void set_scalars(dp::ops::Pointwise& options, How& how, const std::vector<dp::Tensor>& inputs,
                 const std::vector<double>& scalars) {
    if constexpr (requires { how.scalars; }) {
        const bool integers =
            std::none_of(inputs.begin(), inputs.end(),
                         [](const dp::Tensor& input) { return dp::is_float(input.dtype()); });
        constexpr double exact = 9007199254740992;
        for (const double value : scalars) {
            if (integers && value == std::trunc(value) && std::abs(value) <= exact)
                how.scalars.emplace_back(static_cast<std::int64_t>(value));
            else
                how.scalars.emplace_back(value);
        }
    } else {
        options.scalars = scalars;
    }
}

}  // namespace

void call_pointwise_into(const std::vector<at::Tensor>& outs, dp::ops::Pointwise options,
                         const std::vector<dp::Tensor>& inputs,
                         const std::vector<double>& scalars) {
    dp::ops::CallOptions how;
    set_scalars(options, how, inputs, scalars);
    call_into(outs, options, inputs, {}, how);
}

void pointwise_into(const std::vector<at::Tensor>& outs, std::string code,
                    const std::vector<at::Tensor>& inputs, const std::vector<double>& scalars,
                    bool keep_dim) {
    dp::ops::Pointwise options{.code = std::move(code), .keep_dim = keep_dim};
    for (const at::Tensor& out : outs) options.dtypes.push_back(dtype_of(out.scalar_type()));
    if (inputs.empty()) options.shape = dp::ops::IntList(outs.front().sizes());
    std::vector<dp::Tensor> views;
    views.reserve(inputs.size());
    for (const at::Tensor& input : inputs) views.push_back(view_of(input));
    call_pointwise_into(outs, options, views, scalars);
}

dp::Precision precision_of(at::ScalarType type) {
    if (type == at::kHalf) return dp::Precision::fp16;
    if (type == at::kBFloat16) return dp::Precision::bf16;
    return dp::Precision::fp32;
}

}  // namespace dlprim_torch
