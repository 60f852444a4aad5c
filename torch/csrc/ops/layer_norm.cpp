// SPDX-License-Identifier: MIT
// Layer, root-mean-square and group normalisation. The statistics are saved in float (double for
// doubles), and backward reads them again. Tensors of 16 bits are computed in float.
#include "ops/call.hpp"
#include "ops/kernels.hpp"

#include <ATen/native/layer_norm.h>

#include <algorithm>
#include <array>
#include <limits>
#include <tuple>

namespace dlprim_torch {
namespace {

using Three = std::tuple<at::Tensor, at::Tensor, at::Tensor>;

/// The operand in the type of the computation, which is float where input and weight differ.
class Common {
  public:
    Common(const at::Tensor& input, const at::Tensor& weight)
        : type_(!weight.defined() || weight.scalar_type() == input.scalar_type()
                    ? input.scalar_type()
                    : at::kFloat) {}
    at::Tensor operator()(const at::Tensor& tensor) const { return tensor.to(type_); }

  private:
    at::ScalarType type_;
};

/// What is left of an operator on a tensor without elements.
Three nothing(const at::Tensor& first, Ints statistic) {
    const auto options =
        first.options().dtype(first.scalar_type() == at::kDouble ? at::kDouble : at::kFloat);
    return {at::empty(first.sizes(), first.options()), at::zeros(statistic, options),
            at::zeros(statistic, options)};
}

/// Weight and bias in the type of the computation. One that is not there where the other is gets
/// ones or zeros.
std::vector<dp::Tensor> affine(const Common& common, const at::Tensor& weight,
                               const at::Tensor& bias) {
    if (!weight.defined() && !bias.defined()) return {};
    const at::Tensor w = weight.defined() ? weight : at::ones_like(bias);
    const at::Tensor b = bias.defined() ? bias : at::zeros_like(weight);
    return {view_of(common(w).contiguous()), view_of(common(b).contiguous())};
}

/// The results of a normalisation: the normalised tensor, and its statistics.
Three taken(const at::Tensor& input, const std::vector<dp::Tensor>& made) {
    at::Tensor out = at::empty(input.sizes(), input.options());
    give(out, made[0]);
    return {out, new_tensor(made[1], input.device()), new_tensor(made[2], input.device())};
}

using Two = std::tuple<at::Tensor, at::Tensor>;

/// The shape of a statistic of rows: that of the input with 1 for the dimensions of `shape`.
std::vector<std::int64_t> statistic_of(const at::Tensor& input, Ints shape) {
    std::vector<std::int64_t> statistic = input.sizes().vec();
    std::fill(statistic.end() - static_cast<std::ptrdiff_t>(shape.size()), statistic.end(), 1);
    return statistic;
}

Three layer_norm(const at::Tensor& input, Ints shape, const Maybe& weight, const Maybe& bias,
                 double eps) {
    const at::Tensor w = value(weight), b = value(bias);
    at::native::_check_layer_norm_inputs(input, shape, w, b);
    const c10::DeviceGuard guard(input.device());
    if (input.numel() == 0) return nothing(input, statistic_of(input, shape));
    const Common common(input, w);
    const std::vector<dp::Tensor> params = affine(common, w, b);
    return taken(input, results_of(dp::ops::LayerNorm{.dims = static_cast<int>(shape.size()),
                                                      .eps = eps,
                                                      .elementwise_affine = !params.empty(),
                                                      .return_statistics = true},
                                   {view_of(common(input))}, params));
}

/// The gradients of a normalisation that are wanted, by an operator which reads dy, x, the
/// statistics and perhaps the weight. `mean` is undefined where the operator has none. `params` is
/// the shape of weight and bias.
template <typename Options>
Three gradients(const Options& options, const at::Tensor& dy, const at::Tensor& x,
                const at::Tensor& mean, const at::Tensor& rstd, const at::Tensor& weight,
                Ints params, const std::array<bool, 3>& mask) {
    Three result;
    const auto place = [&](Ints sizes, const at::TensorOptions& of, bool wanted) {
        return wanted ? x.numel() == 0 ? at::zeros(sizes, of) : at::empty(sizes, of) : at::Tensor();
    };
    const at::TensorOptions of_params = weight.defined() ? weight.options() : x.options();
    result = {place(x.sizes(), x.options(), mask[0]), place(params, of_params, mask[1]),
              place(params, of_params, mask[2])};
    if (x.numel() == 0) return result;
    const at::ScalarType type = x.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
    std::vector<dp::Tensor> inputs;
    for (const at::Tensor* each : {&dy, &x, &mean, &rstd, &weight})
        if (each->defined()) inputs.push_back(view_of(each->to(type)));
    dp::ops::CallOptions how;
    how.wanted.assign(mask.begin(), mask.begin() + (mean.defined() ? 3 : 2));
    const std::vector<dp::Tensor> made = results_of(options, inputs, {}, how);
    if (mask[0]) give(std::get<0>(result), made[0]);
    if (mask[1]) give(std::get<1>(result), made[1]);
    if (mask[2]) give(std::get<2>(result), made[2]);
    return result;
}

Three layer_norm_backward(const at::Tensor& dy, const at::Tensor& x, Ints shape,
                          const at::Tensor& mean, const at::Tensor& rstd, const Maybe& weight,
                          const Maybe&, std::array<bool, 3> mask) {
    const c10::DeviceGuard guard(x.device());
    return gradients(dp::ops::LayerNormBackward{.dims = static_cast<int>(shape.size())}, dy, x,
                     mean, rstd, value(weight), shape, mask);
}

Two rms_norm(const at::Tensor& input, Ints shape, const Maybe& weight, std::optional<double> eps) {
    const at::Tensor w = value(weight);
    at::native::_check_rms_norm_inputs_symint(input, c10::fromIntArrayRefSlow(shape), w);
    const c10::DeviceGuard guard(input.device());
    if (input.numel() == 0) {
        const Three made = nothing(input, statistic_of(input, shape));
        return {std::get<0>(made), std::get<1>(made)};
    }
    const Common common(input, w);
    std::vector<dp::Tensor> params;
    if (w.defined()) params.push_back(view_of(common(w).contiguous()));
    // PyTorch's default: of the type in which it computes.
    const double least = input.scalar_type() == at::kDouble ? std::numeric_limits<double>::epsilon()
                                                            : std::numeric_limits<float>::epsilon();
    const std::vector<dp::Tensor> made =
        results_of(dp::ops::RMSNorm{.dims = static_cast<int>(shape.size()),
                                    .eps = eps.value_or(least),
                                    .elementwise_affine = w.defined(),
                                    .return_statistics = true},
                   {view_of(common(input))}, params);
    at::Tensor out = at::empty(input.sizes(), input.options());
    give(out, made[0]);
    return {out, new_tensor(made[1], input.device())};
}

Two rms_norm_backward(const at::Tensor& dy, const at::Tensor& x, Ints shape, const at::Tensor& rstd,
                      const Maybe& weight, std::array<bool, 2> mask) {
    const c10::DeviceGuard guard(x.device());
    const Three made =
        gradients(dp::ops::RMSNormBackward{.dims = static_cast<int>(shape.size())}, dy, x,
                  at::Tensor(), rstd, value(weight), shape, {mask[0], mask[1], false});
    return {std::get<0>(made), std::get<1>(made)};
}

Three group_norm(const at::Tensor& input, const Maybe& weight, const Maybe& bias,
                 std::int64_t batch, std::int64_t channels, std::int64_t image, std::int64_t groups,
                 double eps) {
    const at::Tensor w = value(weight), b = value(bias);
    TORCH_CHECK(groups > 0 && channels % groups == 0,
                "Expected number of channels in input to be divisible by num_groups, but got input "
                "of shape ",
                input.sizes(), " and num_groups=", groups);
    for (const at::Tensor* each : {&w, &b})
        TORCH_CHECK(!each->defined() || (each->dim() == 1 && each->numel() == channels),
                    "Expected weight and bias to be vectors of size equal to the number of "
                    "channels in input, but got shape ",
                    each->sizes(), " and input of shape ", input.sizes());
    const c10::DeviceGuard guard(input.device());
    if (input.numel() == 0) return nothing(input, {batch, groups});
    const Common common(input, w);
    const std::vector<dp::Tensor> params = affine(common, w, b);
    const at::Tensor x = common(input).reshape({batch, channels, image});
    return taken(input, results_of(dp::ops::GroupNorm{.num_groups = groups,
                                                      .eps = eps,
                                                      .affine = !params.empty(),
                                                      .return_statistics = true},
                                   {view_of(x)}, params));
}

Three group_norm_backward(const at::Tensor& dy, const at::Tensor& x, const at::Tensor& mean,
                          const at::Tensor& rstd, const Maybe& weight, std::int64_t batch,
                          std::int64_t channels, std::int64_t image, std::int64_t groups,
                          std::array<bool, 3> mask) {
    const c10::DeviceGuard guard(x.device());
    const std::vector<std::int64_t> sizes{batch, channels, image};
    Three made = gradients(dp::ops::GroupNormBackward{.num_groups = groups}, dy.reshape(sizes),
                           x.reshape(sizes), mean.reshape({batch, groups}),
                           rstd.reshape({batch, groups}), value(weight), {channels}, mask);
    if (mask[0]) std::get<0>(made) = std::get<0>(made).view(x.sizes());
    return made;
}

DLPRIM_TORCH_KERNELS(m) {
    m.impl("native_layer_norm", layer_norm);
    m.impl("native_layer_norm_backward", layer_norm_backward);
    m.impl("_fused_rms_norm", rms_norm);
    m.impl("_fused_rms_norm_backward", rms_norm_backward);
    m.impl("native_group_norm", group_norm);
    m.impl("native_group_norm_backward", group_norm_backward);
}

}  // namespace
}  // namespace dlprim_torch
