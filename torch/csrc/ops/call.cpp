// SPDX-License-Identifier: MIT
// See call.hpp.
#include "ops/call.hpp"

#include <algorithm>
#include <cmath>

namespace dlprim_torch {

Outputs::Outputs(const std::vector<at::Tensor>& tensors)
    : tensors_(tensors), places_(tensors.size()), done_(tensors.size(), false) {
    for (std::size_t i = 0; i < tensors.size(); ++i) {
        const at::Tensor& tensor = tensors[i];
        // A storage without memory gets the result as the engine wrote it.
        if (is_whole(tensor) && memory_of(tensor).fresh()) continue;
        places_[i] = view_of(tensor);
        done_[i] = true;
    }
}

void Outputs::take(const std::vector<dp::Tensor>& results) const {
    for (std::size_t i = 0; i < tensors_.size(); ++i)
        if (!done_[i]) give(tensors_[i], results[i]);
}

namespace {

/// Among integers whole numbers are integers, so that results are exact.
std::vector<dp::Scalar> exact_scalars(const std::vector<dp::Tensor>& inputs,
                                      const std::vector<double>& scalars) {
    const bool integers = std::none_of(inputs.begin(), inputs.end(), [](const dp::Tensor& input) {
        return dp::is_float(input.dtype());
    });
    constexpr double exact = 9007199254740992;
    std::vector<dp::Scalar> made;
    made.reserve(scalars.size());
    for (const double value : scalars) {
        if (integers && value == std::trunc(value) && std::abs(value) <= exact)
            made.emplace_back(static_cast<std::int64_t>(value));
        else
            made.emplace_back(value);
    }
    return made;
}

}  // namespace

void call_pointwise_into(const std::vector<at::Tensor>& outs, const dp::ops::Pointwise& options,
                         const std::vector<dp::Tensor>& inputs,
                         const std::vector<double>& scalars) {
    dp::ops::CallOptions how;
    how.scalars = exact_scalars(inputs, scalars);
    call_into(outs, options, inputs, {}, std::move(how));
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
