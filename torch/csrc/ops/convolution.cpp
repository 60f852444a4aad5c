// SPDX-License-Identifier: MIT
// Convolutions and their gradients, of images, of sequences (images of height 1) and of volumes.
#include "fallback/fallback.hpp"
#include "ops/call.hpp"
#include "ops/kernels.hpp"

#include <algorithm>
#include <array>
#include <tuple>

namespace dlprim_torch {
namespace {

using SymInts = c10::SymIntArrayRef;
using Three = std::tuple<at::Tensor, at::Tensor, at::Tensor>;

/// What a convolution computes, as options of dlprim's operators.
struct Convolution {
    bool transposed = false, bias = false;
    bool sequence = false;
    std::int64_t groups = 1, channels_out = 0;
    dp::ops::IntList kernel, stride, pad, dilate, output_pad;

    template <typename Options>
    Options options() const {
        Options made;
        made.channels_out = channels_out;
        made.groups = groups;
        made.bias = bias;
        made.kernel = kernel;
        made.stride = stride;
        made.pad = pad;
        made.dilate = dilate;
        if constexpr (requires { made.output_pad; }) made.output_pad = output_pad;
        return made;
    }

    /// Calls `work` with the options.
    template <typename Work>
    auto with_options(Work&& work) const {
        return transposed ? work(options<dp::ops::TransposedConvolution>())
                          : work(options<dp::ops::Convolution>());
    }
};

/// One integer for each of `rank` dimensions of images; that of a sequence, whose height is 1, gets
/// `before` in front.
dp::ops::IntList list(c10::IntArrayRef values, std::int64_t rank, std::int64_t before) {
    if (rank == 1) return {before, values[0]};
    std::vector<std::int64_t> all(static_cast<std::size_t>(rank), values[0]);
    if (values.size() > 1) std::copy(values.begin(), values.end(), all.begin());
    return dp::ops::IntList(std::span<const std::int64_t>(all));
}

Convolution describe(const at::Tensor& weight, bool bias, SymInts stride, SymInts padding,
                     SymInts dilation, bool transposed, SymInts output_padding,
                     std::int64_t groups) {
    const std::int64_t rank = weight.dim() - 2;
    Convolution made;
    made.transposed = transposed;
    made.bias = bias;
    made.sequence = rank == 1;
    made.groups = groups;
    made.channels_out = transposed ? weight.size(1) * groups : weight.size(0);
    made.kernel = list(weight.sizes().slice(2), rank, 1);
    made.stride = list(C10_AS_INTARRAYREF_SLOW(stride), rank, 1);
    made.pad = list(C10_AS_INTARRAYREF_SLOW(padding), rank, 0);
    made.dilate = list(C10_AS_INTARRAYREF_SLOW(dilation), rank, 1);
    made.output_pad = list(C10_AS_INTARRAYREF_SLOW(output_padding), rank, 0);
    return made;
}

/// With a height of 1 where it is a sequence.
at::Tensor as_image(const at::Tensor& tensor, bool sequence) {
    return sequence ? tensor.unsqueeze(-2) : tensor;
}

bool is_served(const at::Tensor& input) {
    return at::isFloatingType(input.scalar_type()) && input.numel() > 0;
}

dp::ops::CallOptions how_for(const at::Tensor& tensor) {
    dp::ops::CallOptions how;
    how.precision = precision_of(tensor.scalar_type());
    return how;
}

/// Whether a training step calls, whose gradients a later batch norm amplifies together with what
/// this convolution rounds: then the library takes smaller tiles of Winograd's algorithm.
bool is_training(const at::Tensor& input, const at::Tensor& weight) {
    return at::GradMode::is_enabled() && (input.requires_grad() || weight.requires_grad());
}

at::Tensor convolution(const at::Tensor& input, const at::Tensor& weight,
                       const std::optional<at::Tensor>& bias, SymInts stride, SymInts padding,
                       SymInts dilation, bool transposed, SymInts output_padding,
                       c10::SymInt groups) {
    const bool with_bias = defined(bias);
    const Convolution what = describe(weight, with_bias, stride, padding, dilation, transposed,
                                      output_padding, groups.expect_int());
    const dp::Tensor x = view_of(as_image(input, what.sequence));
    std::vector<dp::Tensor> params{view_of(as_image(weight, what.sequence))};
    if (with_bias) params.push_back(view_of(*bias));
    dp::ops::CallOptions how = how_for(input);
    how.training = is_training(input, weight);
    const dp::Tensor y = what.with_options(
        [&](const auto& options) { return results_of(options, {x}, params, how).front(); });
    const at::Tensor result = new_tensor(y, input.device());
    return what.sequence ? result.squeeze(-2) : result;
}

Three convolution_backward(const at::Tensor& grad_output, const at::Tensor& input,
                           const at::Tensor& weight, SymInts stride, SymInts padding,
                           SymInts dilation, bool transposed, SymInts output_padding,
                           c10::SymInt groups, std::array<bool, 3> mask) {
    if (!is_served(input))
        return on_cpu<at::_ops::convolution_backward_overrideable>(
            grad_output, input, weight, stride, padding, dilation, transposed, output_padding,
            groups, mask);
    const Convolution what = describe(weight, mask[2], stride, padding, dilation, transposed,
                                      output_padding, groups.expect_int());
    const dp::Tensor x = view_of(as_image(input, what.sequence));
    const dp::Tensor dy = view_of(as_image(grad_output, what.sequence));
    std::vector<dp::Tensor> params{view_of(as_image(weight, what.sequence))};
    if (mask[2])  // of which only the shape counts
        params.push_back(translated(
            [&] { return dp::Tensor(x.context(), {what.channels_out}, params[0].dtype()); }));
    dp::ops::CallOptions how = how_for(input);
    how.wanted = {mask[0], mask[1]};
    if (mask[2]) how.wanted.push_back(true);
    const std::vector<dp::Tensor> gradients = what.with_options(
        [&](const auto& options) { return gradients_of(options, {x}, params, {dy}, how); });
    Three result;
    const auto finish = [&](const dp::Tensor& gradient, bool image) {
        const at::Tensor made = new_tensor(gradient, input.device());
        return image && what.sequence ? made.squeeze(-2) : made;
    };
    if (mask[0]) std::get<0>(result) = finish(gradients[0], true);
    if (mask[1]) std::get<1>(result) = finish(gradients[1], true);
    if (mask[2]) std::get<2>(result) = finish(gradients[2], false);
    return result;
}

DLPRIM_TORCH_KERNELS(m) {
    m.where(is_served).impl("convolution_overrideable", convolution);
    m.impl("convolution_backward_overrideable", convolution_backward);
}

}  // namespace
}  // namespace dlprim_torch
