// SPDX-License-Identifier: MIT
// The negative log likelihood of labels, of rows [N, C] and of images [N, C, H, W].
//
// A label that is neither a class nor ignore_index is found by the gather, which reads nothing
// there, and raised when the program next waits for the device.
#include "ops/call.hpp"

#include <ATen/core/Reduction.h>

#include <optional>
#include <tuple>

namespace dlprim_torch {
namespace {

using Maybe = std::optional<at::Tensor>;

bool has(const Maybe& tensor) {
    return tensor && tensor->defined();
}

/// Inputs as [N, C, ...] and labels as [N, 1, ...].
struct Operands {
    at::Tensor input, labels;
    at::Tensor weight;  ///< [1, C, 1, ...], or undefined
};

Operands operands(const at::Tensor& self, const at::Tensor& target, const Maybe& weight) {
    Operands made;
    made.input = self.dim() == 1 ? self.unsqueeze(0) : self;
    made.labels = self.dim() == 1 ? target.reshape({1, 1}) : target.unsqueeze(1);
    if (has(weight)) {
        std::vector<std::int64_t> sizes(static_cast<std::size_t>(made.input.dim()), 1);
        sizes[1] = weight->numel();
        made.weight = weight->view(sizes);
    }
    return made;
}

/// The elements of `data` that the labels name along dimension 1. Ignored ones name the first.
at::Tensor picked(const at::Tensor& data, const at::Tensor& labels, std::int64_t ignored) {
    const at::Tensor safe = at::empty(labels.sizes(), labels.options());
    pointwise_into({safe}, "y0 = x0 == p0 ? 0 : x0", {labels}, {static_cast<double>(ignored)});
    const at::Tensor out = at::empty(labels.sizes(), data.options());
    call_into({out}, dp::ops::Gather{.mode = "elements", .dim = 1}, {view_of(data), view_of(safe)});
    return out;
}

std::string all_axes(std::int64_t rank) {
    std::string text = "[0";
    for (std::int64_t d = 1; d < rank; ++d) text.append(",").append(std::to_string(d));
    return text + "]";
}

void forward_into(const at::Tensor& self, const at::Tensor& target, const Maybe& weight,
                  std::int64_t reduction, std::int64_t ignored, const at::Tensor& output,
                  const at::Tensor& total) {
    if (target.numel() == 0) {
        output.fill_(reduction == at::Reduction::Mean ? std::nan("") : 0.0);
        total.zero_();
        return;
    }
    const Operands by = operands(self, target, weight);
    std::vector<at::Tensor> inputs{picked(by.input, by.labels, ignored), by.labels};
    std::string factor = "x1 != p0";
    if (by.weight.defined()) {
        std::vector<std::int64_t> sizes = by.input.sizes().vec();
        inputs.push_back(picked(by.weight.expand(sizes), by.labels, ignored));
        factor = "x1 != p0 ? x2 : 0";
    }
    const std::vector<double> scalars{static_cast<double>(ignored)};
    const std::string begin = "w = " + factor + "; l = x1 != p0 ? -x0 * w : 0; ";
    if (reduction == at::Reduction::None) {
        const at::Tensor shaped = output.view(by.labels.sizes());
        pointwise_into({shaped}, begin + "y0 = l", inputs, scalars);
        total.zero_();
        return;
    }
    const std::string axes = all_axes(by.labels.dim());
    pointwise_into({output, total}, begin + "y0 = sum" + axes + "(l); y1 = sum" + axes + "(w)",
                   inputs, scalars, false);
    if (reduction == at::Reduction::Mean) pointwise_into({output}, "y0 = x0 / x1", {output, total});
}

void backward_into(const at::Tensor& grad, const at::Tensor& self, const at::Tensor& target,
                   const Maybe& weight, std::int64_t reduction, std::int64_t ignored,
                   const at::Tensor& total, const at::Tensor& grad_input) {
    if (grad_input.numel() == 0) return;
    const Operands by = operands(self, target, weight);
    const at::Tensor result = self.dim() == 1 ? grad_input.unsqueeze(0) : grad_input;
    const bool each = reduction == at::Reduction::None;
    std::vector<at::Tensor> inputs{by.labels, each ? grad.view(by.labels.sizes()) : grad};
    std::string value = "-x1";
    if (by.weight.defined()) {
        value.append(" * x").append(std::to_string(inputs.size()));
        inputs.push_back(by.weight);
    }
    if (reduction == at::Reduction::Mean) {
        value.append(" / x").append(std::to_string(inputs.size()));
        inputs.push_back(total);
    }
    dp::ops::Pointwise options{.code = "y0 = x0 == index(1) && x0 != p0 ? " + value + " : 0",
                               .dtypes = {dtype_of(result.scalar_type())},
                               .shape = dp::ops::IntList(result.sizes())};
    std::vector<dp::Tensor> views;
    for (const at::Tensor& input : inputs) views.push_back(view_of(input));
    call_pointwise_into({result}, options, views, {static_cast<double>(ignored)});
}

std::tuple<at::Tensor&, at::Tensor&> forward_out(const at::Tensor& self, const at::Tensor& target,
                                                 const Maybe& weight, std::int64_t reduction,
                                                 c10::SymInt ignored, at::Tensor& output,
                                                 at::Tensor& total) {
    forward_into(self, target, weight, reduction, ignored.expect_int(), output, total);
    return {output, total};
}

at::Tensor& backward_out(const at::Tensor& grad, const at::Tensor& self, const at::Tensor& target,
                         const Maybe& weight, std::int64_t reduction, c10::SymInt ignored,
                         const at::Tensor& total, at::Tensor& grad_input) {
    backward_into(grad, self, target, weight, reduction, ignored.expect_int(), total, grad_input);
    return grad_input;
}

std::tuple<at::Tensor, at::Tensor> forward2d(const at::Tensor& self, const at::Tensor& target,
                                             const Maybe& weight, std::int64_t reduction,
                                             c10::SymInt ignored) {
    TORCH_CHECK(self.dim() == 4 && target.dim() == 3,
                "nll_loss2d takes [N, C, H, W] and labels [N, H, W], not ", self.sizes(), " and ",
                target.sizes(), ".");
    const at::Tensor output = at::empty(
        reduction == at::Reduction::None ? target.sizes() : c10::IntArrayRef(), self.options());
    const at::Tensor total = at::empty({}, self.options());
    forward_into(self, target, weight, reduction, ignored.expect_int(), output, total);
    return {output, total};
}

at::Tensor backward2d(const at::Tensor& grad, const at::Tensor& self, const at::Tensor& target,
                      const Maybe& weight, std::int64_t reduction, c10::SymInt ignored,
                      const at::Tensor& total) {
    const at::Tensor grad_input = at::empty(self.sizes(), self.options());
    backward_into(grad, self, target, weight, reduction, ignored.expect_int(), total, grad_input);
    return grad_input;
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
    m.impl("nll_loss_forward.output", forward_out);
    m.impl("nll_loss_backward.grad_input", backward_out);
    m.impl("nll_loss2d_forward", forward2d);
    m.impl("nll_loss2d_backward", backward2d);
}

}  // namespace
}  // namespace dlprim_torch
