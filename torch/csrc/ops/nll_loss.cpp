// SPDX-License-Identifier: MIT
// The negative log likelihood of labels, of rows [N, C] and of images [N, C, H, W].
//
// A label that is neither a class nor ignore_index is found by the kernel, and raised when the
// program next waits for the device.
#include "ops/call.hpp"
#include "ops/kernels.hpp"

#include <ATen/core/Reduction.h>

#include <cmath>
#include <optional>
#include <tuple>

namespace dlprim_torch {
namespace {

std::string name_of_reduction(std::int64_t reduction) {
    if (reduction == at::Reduction::Mean) return "mean";
    return reduction == at::Reduction::Sum ? "sum" : "none";
}

/// A single row as a batch of one.
at::Tensor as_batch(const at::Tensor& tensor, bool alone) {
    return alone ? tensor.unsqueeze(0) : tensor;
}

void forward_into(const at::Tensor& self, const at::Tensor& target, const Maybe& weight,
                  std::int64_t reduction, std::int64_t ignored, const at::Tensor& output,
                  const at::Tensor& total) {
    if (target.numel() == 0) {
        output.fill_(reduction == at::Reduction::Mean ? std::nan("") : 0.0);
        total.zero_();
        return;
    }
    const bool alone = self.dim() == 1;
    std::vector<dp::Tensor> inputs{view_of(as_batch(self, alone)),
                                   view_of(as_batch(target, target.dim() == 0))};
    if (defined(weight)) inputs.push_back(view_of(*weight));
    const std::vector<dp::Tensor> made = results_of(
        dp::ops::NLLLoss{
            .reduce = name_of_reduction(reduction), .ignore_index = ignored, .return_weight = true},
        inputs);
    give(output, made[0]);
    give(total, made[1]);
}

void backward_into(const at::Tensor& grad, const at::Tensor& self, const at::Tensor& target,
                   const Maybe& weight, std::int64_t reduction, std::int64_t ignored,
                   const at::Tensor& total, const at::Tensor& grad_input) {
    if (grad_input.numel() == 0) return;
    const bool alone = self.dim() == 1;
    const bool each = reduction == at::Reduction::None;
    const at::Tensor labels = as_batch(target, target.dim() == 0);
    std::vector<dp::Tensor> inputs{view_of(each ? grad.reshape(labels.sizes()) : grad.reshape({1})),
                                   view_of(labels), view_of(total.reshape({1}))};
    if (defined(weight)) inputs.push_back(view_of(*weight));
    give(grad_input, results_of(dp::ops::NLLLossBackward{.reduce = name_of_reduction(reduction),
                                                         .ignore_index = ignored,
                                                         .classes = self.size(alone ? 0 : 1)},
                                inputs)[0]);
}

std::tuple<at::Tensor&, at::Tensor&> forward_out(const at::Tensor& self, const at::Tensor& target,
                                                 const Maybe& weight, std::int64_t reduction,
                                                 c10::SymInt ignored, at::Tensor& output,
                                                 at::Tensor& total) {
    at::meta::nll_loss_forward_out(output, total, self, target, weight, reduction,
                                   ignored.expect_int());
    forward_into(self, target, weight, reduction, ignored.expect_int(), output, total);
    return {output, total};
}

at::Tensor& backward_out(const at::Tensor& grad, const at::Tensor& self, const at::Tensor& target,
                         const Maybe& weight, std::int64_t reduction, c10::SymInt ignored,
                         const at::Tensor& total, at::Tensor& grad_input) {
    at::meta::nll_loss_backward_out(grad_input, grad, self, target, weight, reduction,
                                    ignored.expect_int(), total);
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

DLPRIM_TORCH_KERNELS(m) {
    m.impl("nll_loss_forward.output", forward_out);
    m.impl("nll_loss_backward.grad_input", backward_out);
    m.impl("nll_loss2d_forward", forward2d);
    m.impl("nll_loss2d_backward", backward2d);
}

}  // namespace
}  // namespace dlprim_torch
