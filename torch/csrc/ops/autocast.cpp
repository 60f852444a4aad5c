// SPDX-License-Identifier: MIT
// Automatic mixed precision: which operators torch.autocast("ocl") casts, by the lists that CUDA
// uses. Convolutions keep weights in float: their engines round them as they pack them, and the
// gradient of a weight is float at once. That saves the casts of every weight and of its gradient.
#include "common.hpp"

#include <ATen/TensorSubclassLikeUtils.h>
#include <ATen/autocast_mode.h>

#include <string_view>
#include <utility>

namespace dlprim_torch {
namespace {

using namespace at;  // The lists name its types, which are not the same in all versions.

at::Tensor refused(const at::Tensor&, const at::Tensor&, const std::optional<at::Tensor>&,
                   std::int64_t) {
    TORCH_CHECK(
        false,
        "binary_cross_entropy and BCELoss are unsafe under autocast, since a half may become "
        "exactly 0 or 1. Use binary_cross_entropy_with_logits or BCEWithLogitsLoss.");
}

constexpr c10::DeviceType ours = c10::DeviceType::PrivateUse1;

/// Of the names in PyTorch's list: those that have kernels of their own below.
bool is_convolution(std::string_view name) {
    return name == "convolution" || name == "conv1d" || name == "conv2d" || name == "conv3d";
}

/// Runs a convolution with autocast off. Where weight and bias are float, only the input is cast,
/// unless the call is traced: PyTorch's own shapes of convolutions refuse two types.
at::Tensor convolve(const at::Tensor& input, const at::Tensor& weight,
                    const std::optional<at::Tensor>& bias, at::SymIntArrayRef stride,
                    at::SymIntArrayRef padding, at::SymIntArrayRef dilation, bool transposed,
                    at::SymIntArrayRef output_padding, c10::SymInt groups) {
    const c10::impl::ExcludeDispatchKeyGuard off(c10::DispatchKey::AutocastPrivateUse1);
    const at::ScalarType type = autocast::get_lower_precision_fp_from_device_type(ours);
    const at::Tensor x = autocast::cached_cast(type, input, ours);
    const bool with_bias = bias && bias->defined();
    const bool floats = weight.scalar_type() == at::kFloat && x.scalar_type() == type &&
                        (!with_bias || bias->scalar_type() == at::kFloat) &&
                        !at::isTensorSubclassLike(x) && !at::isTensorSubclassLike(weight);
    return at::convolution_symint(
        x, floats ? weight : autocast::cached_cast(type, weight, ours),
        floats || !with_bias ? bias : autocast::cached_cast(type, bias, ours), stride, padding,
        dilation, transposed, output_padding, std::move(groups));
}

/// conv1d, conv2d and conv3d: an input without a batch gets one.
at::Tensor convolve_images(const at::Tensor& input, const at::Tensor& weight,
                           const std::optional<at::Tensor>& bias, at::SymIntArrayRef stride,
                           at::SymIntArrayRef padding, at::SymIntArrayRef dilation,
                           c10::SymInt groups) {
    const std::int64_t rank = weight.dim() - 2;
    TORCH_CHECK(input.dim() == rank + 2 || input.dim() == rank + 1, "Expected ", rank + 1,
                "D (unbatched) or ", rank + 2, "D (batched) input to conv", rank,
                "d, but got input of size: ", input.sizes());
    const bool batched = input.dim() == rank + 2;
    const std::vector<c10::SymInt> none(static_cast<std::size_t>(rank), 0);
    const at::Tensor made = convolve(batched ? input : input.unsqueeze(0), weight, bias, stride,
                                     padding, dilation, false, none, std::move(groups));
    return batched ? made : made.squeeze(0);
}

TORCH_LIBRARY_IMPL(_, AutocastPrivateUse1, m) {
    m.fallback(torch::CppFunction::makeFallthrough());
}

TORCH_LIBRARY_IMPL(aten, AutocastPrivateUse1, m) {
#define LOWER(...) \
    if (!is_convolution(#__VA_ARGS__)) KERNEL_PRIVATEUSEONE(__VA_ARGS__, lower_precision_fp)
#define FLOAT(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32)
#define FLOAT_OR_DTYPE(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32_set_opt_dtype)
#define WIDEST(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, promote)
    AT_FORALL_LOWER_PRECISION_FP(LOWER)
    m.impl("convolution", convolve);
    m.impl("conv1d", convolve_images);
    m.impl("conv2d", convolve_images);
    m.impl("conv3d", convolve_images);
    AT_FORALL_FP32(FLOAT)
    AT_FORALL_FP32_SET_OPT_DTYPE(FLOAT_OR_DTYPE)
    AT_FORALL_DIFFERENT_REDISPATCH_SIGNATURE(KERNEL_DIFFERENT_REDISPATCH_SIGNATURE_PRIVATEUSEONE)
    AT_FORALL_PROMOTE(WIDEST)
#undef LOWER
#undef FLOAT
#undef FLOAT_OR_DTYPE
#undef WIDEST
    m.impl("binary_cross_entropy", refused);
}

}  // namespace
}  // namespace dlprim_torch
