// SPDX-License-Identifier: MIT
// Losses by the margin between the score of a label and those of other classes. A label out of
// range is raised when the program next waits.
#include "ops/call.hpp"
#include "ops/kernels.hpp"
#include "ops/overloads.hpp"

#include <tuple>

namespace dlprim_torch {
namespace {

constexpr std::int64_t mean = 1, sum = 2;  ///< values of the argument `reduction`

/// [C] as [1, C].
at::Tensor rows(const at::Tensor& tensor) {
    TORCH_CHECK(tensor.dim() <= 2, "A margin loss needs scores [C] or [N, C], not ",
                tensor.sizes());
    return tensor.dim() == 2 ? tensor : tensor.reshape({1, -1});
}

/// The elements of a matrix's rows, or of a vector, that labels name.
at::Tensor taken(const at::Tensor& from, const at::Tensor& labels) {
    if (from.dim() == 1) {
        const dp::Tensor made = results_of(dp::ops::Gather{.from_end = false},
                                           {view_of(from), view_of(labels.contiguous())})[0];
        return new_tensor(made, from.device());
    }
    return new_tensor(results_of(dp::ops::Gather{.mode = "elements", .dim = 1, .from_end = false},
                                 {view_of(from), view_of(labels.contiguous())})[0],
                      from.device());
}

/// Brings the loss of each row to `out`.
at::Tensor& reduced(const at::Tensor& losses, const at::Tensor& self, std::int64_t reduction,
                    at::Tensor& out) {
    bring(out, reduction == mean  ? losses.mean()
               : reduction == sum ? losses.sum()
               : self.dim() < 2   ? losses.reshape({})
                                  : losses);
    return out;
}

/// The factor of each row's gradient, as [N, 1] or a tensor that can be broadcast to it.
at::Tensor flow(const at::Tensor& grad_output, std::int64_t count, std::int64_t reduction) {
    if (reduction == mean) return grad_output.reshape({1, 1}) / count;
    return grad_output.reshape({-1, 1});
}

/// Of one label a row: x0 are the scores, x1 the labels, x2 the labels' scores and x3 the labels'
/// weights.
class Single {
  public:
    Single(const at::Tensor& self, const at::Tensor& target, const Maybe& weight)
        : scores(rows(self)) {
        const at::Tensor labels = target.reshape({-1, 1});
        TORCH_CHECK(labels.size(0) == scores.size(0),
                    "inconsistent target size, got: ", target.sizes(), " for scores ",
                    self.sizes());
        operands = {scores, labels, taken(scores, labels)};
        if (defined(weight)) operands.push_back(taken(*weight, labels.view({-1})).unsqueeze(1));
    }
    std::string weighted(std::string text) const {
        return operands.size() == 4 ? "(" + text + ") * x3" : text;
    }

    at::Tensor scores;
    std::vector<at::Tensor> operands;
};

constexpr const char* margin_of = "m = index(1) == x1 ? 0 : max(p0 - x2 + x0, 0); ";

void check_power(const at::Scalar& p) {
    TORCH_CHECK(p.toInt() == 1 || p.toInt() == 2, "only p == 1 and p == 2 supported");
}

at::Tensor& multi_margin_out(const at::Tensor& self, const at::Tensor& target, const at::Scalar& p,
                             const at::Scalar& margin, const Maybe& weight, std::int64_t reduction,
                             at::Tensor& out) {
    check_power(p);
    TORCH_CHECK(self.numel() > 0, "multi_margin_loss needs scores, not ", self.sizes());
    const Single of(self, target, weight);
    at::Tensor losses = at::empty({of.scores.size(0)}, self.options());
    const std::string term = of.weighted(p.toInt() == 1 ? "m" : "m * m");
    pointwise_into({losses}, margin_of + ("y0 = mean[1](" + term + ")"), of.operands,
                   {margin.to<double>()}, false);
    return reduced(losses, self, reduction, out);
}

at::Tensor& multi_margin_backward_out(const at::Tensor& grad_output, const at::Tensor& self,
                                      const at::Tensor& target, const at::Scalar& p,
                                      const at::Scalar& margin, const Maybe& weight,
                                      std::int64_t reduction, at::Tensor& grad_input) {
    check_power(p);
    at::native::resize_output(grad_input, self.sizes());
    if (self.numel() == 0) return grad_input;
    Single of(self, target, weight);
    const std::string slope =
        margin_of + ("g = " + of.weighted(p.toInt() == 1 ? "m > 0" : "2 * m") + "; ");
    at::Tensor all = at::empty({of.scores.size(0), 1}, self.options());
    pointwise_into({all}, slope + "y0 = sum[1](g)", of.operands, {margin.to<double>()});
    const std::string next = std::to_string(of.operands.size());
    const std::string last = std::to_string(of.operands.size() + 1);
    of.operands.push_back(all);
    of.operands.push_back(flow(grad_output, of.scores.size(0) * of.scores.size(1), reduction));
    if (reduction != mean) of.operands.back() = of.operands.back() / of.scores.size(1);
    at::Tensor made = at::empty(of.scores.sizes(), self.options());
    pointwise_into({made}, slope + "y0 = (index(1) == x1 ? -x" + next + " : g) * x" + last,
                   of.operands, {margin.to<double>()});
    return grad_input.copy_(made.view(self.sizes()));
}

/// Of several labels a row, which end before the first -1. Tensors [N, labels, classes] are
/// broadcast: labels have the shape [N, labels, 1], and scores [N, 1, classes].
class Several {
  public:
    Several(const at::Tensor& self, const at::Tensor& target) : scores(rows(self)) {
        const at::Tensor given = rows(target);
        TORCH_CHECK(given.sizes() == scores.sizes(), "inconsistent target size: ", target.sizes(),
                    " for scores of size: ", self.sizes());
        labels = given.unsqueeze(2);
        counts = at::empty(labels.sizes(), self.options());
        pointwise_into({counts}, "y0 = min[2](index(2) > index(1) || x0 >= 0)",
                       {given.unsqueeze(1).expand({-1, given.size(1), -1}),
                        labels.expand({-1, -1, given.size(1)})});
        at::Tensor named = at::empty(given.sizes(), given.options());
        pointwise_into({named}, "y0 = x0 == -1 ? 0 : x0", {given});
        label_scores = taken(scores, named).unsqueeze(2);
        is_target = at::empty({given.size(0), 1, given.size(1)}, self.options());
        pointwise_into({is_target}, "y0 = max[1](x1 != 0 && x0 == index(2) ? 1 : 0)",
                       {labels.expand({-1, -1, given.size(1)}), counts});
    }
    /// x0 to x3, of which the margin m of a label and a class is made.
    std::vector<at::Tensor> operands() const {
        return {scores.unsqueeze(1), label_scores, counts, is_target};
    }
    static constexpr const char* margin_of = "m = x2 != 0 && x3 == 0 ? max(1 - x1 + x0, 0) : 0; ";

    at::Tensor scores;        ///< [N, classes]
    at::Tensor labels;        ///< [N, labels, 1], like the next two
    at::Tensor counts;        ///< whether a label comes before the first -1
    at::Tensor label_scores;  ///< the scores of the labels
    at::Tensor is_target;     ///< [N, 1, classes]: whether a label names the class
};

std::tuple<at::Tensor&, at::Tensor&> multilabel_out(const at::Tensor& self,
                                                    const at::Tensor& target,
                                                    std::int64_t reduction, at::Tensor& out,
                                                    at::Tensor& is_target) {
    TORCH_CHECK(self.numel() > 0, "multilabel_margin_loss needs scores, not ", self.sizes());
    const Several of(self, target);
    at::Tensor losses = at::empty({of.scores.size(0)}, self.options());
    pointwise_into({losses}, std::string(Several::margin_of) + "y0 = sum[1,2](m)", of.operands(),
                   {}, false);
    losses.div_(of.scores.size(1));
    bring(is_target, of.is_target.view(target.sizes()));
    return {reduced(losses, self, reduction, out), is_target};
}

std::tuple<at::Tensor, at::Tensor> multilabel(const at::Tensor& self, const at::Tensor& target,
                                              std::int64_t reduction) {
    const c10::DeviceGuard guard(self.device());
    at::Tensor out = at::empty({0}, self.options()), is_target = at::empty({0}, self.options());
    multilabel_out(self, target, reduction, out, is_target);
    return {out, is_target};
}

at::Tensor& multilabel_backward_out(const at::Tensor& grad_output, const at::Tensor& self,
                                    const at::Tensor& target, std::int64_t reduction,
                                    const at::Tensor&, at::Tensor& grad_input) {
    at::native::resize_output(grad_input, self.sizes());
    if (self.numel() == 0) return grad_input;
    const Several of(self, target);
    const std::int64_t batch = of.scores.size(0), classes = of.scores.size(1);
    at::Tensor of_classes = at::empty({batch, 1, classes}, self.options());
    at::Tensor of_labels = at::empty({batch, classes, 1}, self.options());
    const std::string margin = Several::margin_of;
    pointwise_into({of_classes}, margin + "y0 = sum[1](m > 0)", of.operands());
    pointwise_into({of_labels}, margin + "y0 = sum[2](m > 0)", of.operands());
    // A label that counts gives what its margins take to the class that it names.
    at::Tensor made = at::empty_like(of_classes);
    pointwise_into({made}, "y0 = sum[1](x1 != 0 && x0 == index(2) ? x2 : 0)",
                   {of.labels.expand({-1, -1, classes}), of.counts, of_labels});
    made = of_classes.sub_(made).view({batch, classes}) *
           (flow(grad_output, batch, reduction) / classes);
    return grad_input.copy_(made.view(self.sizes()));
}

DLPRIM_TORCH_KERNELS(m) {
    m.impl("multi_margin_loss", into_new<multi_margin_out>);
    m.impl("multi_margin_loss.out", multi_margin_out);
    m.impl("multi_margin_loss_backward", into_new<multi_margin_backward_out>);
    m.impl("multi_margin_loss_backward.grad_input", multi_margin_backward_out);
    m.impl("multilabel_margin_loss_forward", multilabel);
    m.impl("multilabel_margin_loss_forward.output", multilabel_out);
    m.impl("multilabel_margin_loss_backward", into_new<multilabel_backward_out>);
    m.impl("multilabel_margin_loss_backward.grad_input", multilabel_backward_out);
}

}  // namespace
}  // namespace dlprim_torch
