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

void pointwise_into(const std::vector<at::Tensor>& outs, std::string code,
                    const std::vector<at::Tensor>& inputs, const Scalars& scalars, bool keep_dim) {
    dp::ops::Pointwise options{.code = std::move(code), .keep_dim = keep_dim};
    for (const at::Tensor& out : outs) options.dtypes.push_back(dtype_of(out.scalar_type()));
    if (inputs.empty()) options.shape = dp::ops::IntList(outs.front().sizes());
    std::vector<dp::Tensor> views;
    views.reserve(inputs.size());
    for (const at::Tensor& input : inputs) views.push_back(view_of(input));
    dp::ops::CallOptions how;
    how.scalars = scalars;
    call_into(outs, options, views, {}, std::move(how));
}

dp::Precision precision_of(at::ScalarType type) {
    if (type == at::kHalf) return dp::Precision::fp16;
    if (type == at::kBFloat16) return dp::Precision::bf16;
    return dp::Precision::fp32;
}

}  // namespace dlprim_torch
