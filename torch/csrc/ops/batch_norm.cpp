// SPDX-License-Identifier: MIT
// Batch normalisation. The statistics are saved, and read again backward. Where weight and bias are
// both there or neither, and all but the input are of one type, its own or float, dlprim's own
// operators serve; else generated kernels do.
#include "ops/call.hpp"
#include "ops/dims.hpp"
#include "ops/kernels.hpp"
#include "ops/overloads.hpp"

#include <ATen/AccumulateType.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <string>
#include <tuple>

namespace dlprim_torch {
namespace {

using Three = std::tuple<at::Tensor, at::Tensor, at::Tensor>;

/// [C] as [1, C, 1, ...], for broadcasting.
at::Tensor per_channel(const at::Tensor& tensor, std::int64_t rank) {
    std::vector<std::int64_t> sizes(static_cast<std::size_t>(rank), 1);
    sizes[1] = tensor.numel();
    return tensor.view(sizes);
}

/// The type of statistics: float for 16 bits.
at::ScalarType statistics_type(const at::Tensor& input) {
    return at::toAccumulateType(input.scalar_type(), true);
}

std::string number(std::size_t i) {
    return std::to_string(i);
}

/// Writes mean and variance of a batch.
void batch_statistics(const at::Tensor& input, const at::Tensor& mean, const at::Tensor& variance) {
    const std::int64_t rank = input.dim();
    const std::string axes = axes_of(all_but(1, rank), rank);
    const at::Tensor m = per_channel(mean, rank), v = per_channel(variance, rank);
    pointwise_into({m}, "y0 = mean" + axes + "(x0)", {input});
    pointwise_into({v}, "d = x0 - x1; y0 = mean" + axes + "(d * d)", {input, m});
}

/// What follows from a batch's mean and variance, by one launch: 1 / sqrt(variance + eps), and the
/// running statistics that are there.
void finish_statistics(const at::Tensor& input, const at::Tensor& running_mean,
                       const at::Tensor& running_var, const at::Tensor& mean,
                       const at::Tensor& variance, const at::Tensor& deviation, double momentum,
                       double eps) {
    const double count = static_cast<double>(input.numel()) / static_cast<double>(input.size(1));
    std::vector<at::Tensor> outs{deviation}, operands{mean, variance};
    std::string code = "y0 = rsqrt(x1 + p0)";
    const auto update = [&](const at::Tensor& running, const std::string& with) {
        if (!running.defined()) return;
        const std::string x = "x" + number(operands.size());
        code += "; y" + number(outs.size()) + " = " + x + " + (" + with + " - " + x + ") * p1";
        operands.push_back(running);
        outs.push_back(running);
    };
    update(running_mean, "x0");
    update(running_var, "x1 * p2");
    pointwise_into(outs, code, operands, {eps, momentum, count / (count - 1)});
}

at::Tensor normalised(const at::Tensor& input, const at::Tensor& mean, const at::Tensor& deviation,
                      const at::Tensor& weight, const at::Tensor& bias) {
    const std::int64_t rank = input.dim();
    std::vector<at::Tensor> operands{input, per_channel(mean, rank), per_channel(deviation, rank)};
    std::string code = "y0 = (x0 - x1) * x2";
    for (const auto& [tensor, sign] : {std::pair(&weight, " * x"), std::pair(&bias, " + x")}) {
        if (!tensor->defined()) continue;
        code += sign + number(operands.size());
        operands.push_back(per_channel(*tensor, rank));
    }
    at::Tensor out = at::empty(input.sizes(), input.options());
    pointwise_into({out}, code, operands);
    return out;
}

/// Whether all these have that type, as far as they are there.
bool all_have(at::ScalarType type, std::initializer_list<const Maybe*> tensors) {
    return std::all_of(tensors.begin(), tensors.end(), [&](const Maybe* tensor) {
        return !value(*tensor).defined() || (*tensor)->scalar_type() == type;
    });
}

/// Whether dlprim's operators take tensors of such types with the input.
bool is_even(const at::Tensor& input, std::initializer_list<const Maybe*> others) {
    return all_have(statistics_type(input), others) || all_have(input.scalar_type(), others);
}

/// By the operator BatchNorm.
Three whole_batch_norm(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias,
                       const at::Tensor& running_mean, const at::Tensor& running_var, bool training,
                       double momentum, double eps) {
    const auto floats = input.options().dtype(statistics_type(input));
    const auto stand_in = [&](const at::Tensor& tensor) {
        return tensor.defined() ? tensor : at::zeros({input.size(1)}, floats);
    };
    std::vector<dp::Tensor> params{view_of(stand_in(running_mean)), view_of(stand_in(running_var))};
    if (weight.defined()) params.insert(params.end(), {view_of(weight), view_of(bias)});
    dp::ops::CallOptions how;
    how.training = training;
    const std::vector<dp::Tensor> made =
        results_of(dp::ops::BatchNorm{.eps = eps,
                                      .momentum = momentum,
                                      .affine = weight.defined(),
                                      .return_statistics = training},
                   {view_of(input)}, params, how);
    const auto taken = [&](std::size_t i) {
        return training ? new_tensor(made[i], input.device()) : at::empty({0}, floats);
    };
    return {new_tensor(made[0], input.device()), taken(1), taken(2)};
}

Three batch_norm(const at::Tensor& input, const Maybe& weight, const Maybe& bias,
                 const Maybe& running_mean, const Maybe& running_var, bool training,
                 double momentum, double eps) {
    TORCH_CHECK(input.dim() >= 2, "Batch normalisation needs [N, C, ...], not ", input.sizes(),
                ".");
    const auto options = input.options().dtype(statistics_type(input));
    const at::Tensor mean = at::empty({training ? input.size(1) : 0}, options);
    const at::Tensor deviation = at::empty_like(mean);
    if (input.numel() == 0) return {at::empty_like(input), mean.zero_(), deviation.zero_()};
    const bool affine = value(weight).defined();
    if (affine == value(bias).defined() && (!training || input.numel() > input.size(1)) &&
        is_even(input, {&weight, &bias, &running_mean, &running_var}))
        return whole_batch_norm(input, value(weight), value(bias), value(running_mean),
                                value(running_var), training, momentum, eps);
    if (!training) {
        const at::Tensor by = at::empty({input.size(1)}, options);
        pointwise_into({by}, "y0 = rsqrt(x0 + p0)", {value(running_var)}, {eps});
        return {normalised(input, value(running_mean), by, value(weight), value(bias)), mean,
                deviation};
    }
    const at::Tensor variance = at::empty_like(mean);
    batch_statistics(input, mean, variance);
    finish_statistics(input, value(running_mean), value(running_var), mean, variance, deviation,
                      momentum, eps);
    return {normalised(input, mean, deviation, value(weight), value(bias)), mean, deviation};
}

Three batch_norm_legit(const at::Tensor& input, const Maybe& weight, const Maybe& bias,
                       at::Tensor& running_mean, at::Tensor& running_var, bool training,
                       double momentum, double eps) {
    return batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps);
}

Three batch_norm_no_stats(const at::Tensor& input, const Maybe& weight, const Maybe& bias,
                          bool training, double momentum, double eps) {
    return batch_norm(input, weight, bias, {}, {}, training, momentum, eps);
}

/// The gradient of the input. With batch statistics, sums of the gradient take part.
at::Tensor input_gradient(const at::Tensor& dy, const at::Tensor& x, const at::Tensor& mean,
                          const at::Tensor& deviation, const at::Tensor& weight,
                          const at::Tensor& sums, const at::Tensor& products, bool train) {
    const std::int64_t rank = x.dim();
    std::vector<at::Tensor> operands{dy, per_channel(deviation, rank)};
    std::string code = "y0 = x0 * x1";
    std::vector<double> scalars;
    if (train) {
        operands.insert(operands.end(), {x, per_channel(mean, rank), per_channel(sums, rank),
                                         per_channel(products, rank)});
        code = "y0 = (x0 - (x4 + (x2 - x3) * x1 * x5) * p0) * x1";
        scalars = {static_cast<double>(x.size(1)) / static_cast<double>(x.numel())};
    }
    if (weight.defined()) {
        code += " * x" + number(operands.size());
        operands.push_back(per_channel(weight, rank));
    }
    at::Tensor dx = at::empty(x.sizes(), x.options());
    pointwise_into({dx}, code, operands, scalars);
    return dx;
}

/// By the operator BatchNormBackward.
Three whole_backward(const at::Tensor& dy, const at::Tensor& x, const at::Tensor& mean,
                     const at::Tensor& deviation, const at::Tensor& weight, bool train,
                     const std::array<bool, 3>& mask) {
    std::vector<dp::Tensor> inputs{view_of(dy), view_of(x), view_of(mean), view_of(deviation)};
    if (weight.defined()) inputs.push_back(view_of(weight));
    dp::ops::CallOptions how;
    how.training = train;
    how.wanted.assign(mask.begin(), mask.end());
    const std::vector<dp::Tensor> made =
        results_of(dp::ops::BatchNormBackward{.use_global_stats = !train}, inputs, {}, how);
    const auto taken = [&](std::size_t i) {
        return mask[i] ? new_tensor(made[i], x.device()) : at::Tensor();
    };
    return {taken(0), taken(1), taken(2)};
}

Three batch_norm_backward(const at::Tensor& dy, const at::Tensor& x, const Maybe& weight,
                          const Maybe& running_mean, const Maybe& running_var,
                          const Maybe& save_mean, const Maybe& save_invstd, bool train, double eps,
                          std::array<bool, 3> mask) {
    const auto options = x.options().dtype(statistics_type(x));
    const at::Tensor sums = at::empty({x.size(1)}, options), products = at::empty_like(sums);
    if (x.numel() == 0) return {at::empty_like(x), products.zero_(), sums.zero_()};
    at::Tensor mean = value(save_mean), deviation = value(save_invstd);
    if (!train) {
        mean = value(running_mean);
        deviation = at::empty({x.size(1)}, options);
        pointwise_into({deviation}, "y0 = rsqrt(x0 + p0)", {value(running_var)}, {eps});
    }
    if (all_have(statistics_type(x), {&weight}) && dy.scalar_type() == x.scalar_type() &&
        mean.scalar_type() == statistics_type(x))
        return whole_backward(dy, x, mean, deviation, value(weight), train, mask);
    const std::int64_t rank = x.dim();
    const std::string axes = axes_of(all_but(1, rank), rank);
    if (train || mask[1] || mask[2])
        pointwise_into({per_channel(sums, rank), per_channel(products, rank)},
                       "y0 = sum" + axes + "(x0); y1 = sum" + axes + "(x0 * (x1 - x2) * x3)",
                       {dy, x, per_channel(mean, rank), per_channel(deviation, rank)});
    const at::Tensor scale = value(weight);
    at::Tensor dx, dw, db;
    if (mask[0]) dx = input_gradient(dy, x, mean, deviation, scale, sums, products, train);
    if (mask[1]) dw = scale.defined() ? products.to(scale.scalar_type()) : products;
    if (mask[2]) db = scale.defined() ? sums.to(scale.scalar_type()) : sums;
    return {dx, dw, db};
}

/// As batch_norm() in training, and a tensor of what backward needs beside that, which is nothing.
std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor> batch_norm_with_update(
    const at::Tensor& input, const Maybe& weight, const Maybe& bias, at::Tensor& running_mean,
    at::Tensor& running_var, double momentum, double eps) {
    const auto [out, mean, deviation] =
        batch_norm(input, weight, bias, running_mean, running_var, true, momentum, eps);
    return {out, mean, deviation, at::empty({0}, input.options().dtype(at::kByte))};
}

Three batch_norm_updated_backward(const at::Tensor& dy, const at::Tensor& x,
                                  const at::Tensor& weight, const Maybe& running_mean,
                                  const Maybe& running_var, const Maybe& save_mean,
                                  const Maybe& save_invstd, bool update, double eps,
                                  std::array<bool, 3> mask, const at::Tensor&) {
    return batch_norm_backward(dy, x, weight, running_mean, running_var, save_mean, save_invstd,
                               update, eps, mask);
}

DLPRIM_TORCH_KERNELS(m) {
    m.impl("native_batch_norm", batch_norm);
    m.impl("native_batch_norm.out", into_outs<batch_norm>);
    m.impl("_native_batch_norm_legit.out", into_outs<batch_norm_legit>);
    m.impl("_native_batch_norm_legit.no_stats_out", into_outs<batch_norm_no_stats>);
    m.impl("_batch_norm_with_update", batch_norm_with_update);
    m.impl("_batch_norm_with_update.out", into_outs<batch_norm_with_update>);
    m.impl("batch_norm_backward", batch_norm_updated_backward);
    m.impl("_native_batch_norm_legit", batch_norm_legit);
    m.impl("_native_batch_norm_legit.no_stats", batch_norm_no_stats);
    m.impl("native_batch_norm_backward", batch_norm_backward);
}

}  // namespace
}  // namespace dlprim_torch
