// SPDX-License-Identifier: MIT
// The loss of connectionist temporal classification (Graves et al., 2006): sums over all alignments
// of labels with steps of time, by recurrences over states. Each step is one launch. The states of
// a sample are its labels with a blank before, between and behind them.
#include "fallback/fallback.hpp"
#include "ops/call.hpp"

#include <algorithm>
#include <limits>
#include <tuple>

namespace dlprim_torch {
namespace {

using Ints = c10::IntArrayRef;

at::Tensor on_device(const std::vector<std::int64_t>& values, const at::Tensor& like) {
    return at::tensor(values, at::kLong).to(like.device());
}

/// What both directions of the recurrence need.
struct States {
    std::int64_t time, batch, count;  ///< steps, samples, and states of the longest sample
    at::Tensor classes;               ///< [N, count]: of each state
    at::Tensor scores;                ///< [T, N, count]: the states' log-probabilities
    at::Tensor skips;                 ///< [N, count]: whether state s may follow s - 2
    at::Tensor inputs, lengths;       ///< [N, 1]: steps, and labels, of each sample

    States(const at::Tensor& log_probs, const at::Tensor& targets, Ints input_lengths,
           Ints target_lengths, std::int64_t blank)
        : time(log_probs.size(0)), batch(log_probs.size(1)) {
        const std::int64_t labels =
            target_lengths.empty()
                ? 0
                : *std::max_element(target_lengths.begin(), target_lengths.end());
        count = 2 * labels + 1;
        inputs = on_device(input_lengths.vec(), log_probs).unsqueeze(1);
        lengths = on_device(target_lengths.vec(), log_probs).unsqueeze(1);
        classes = at::full({batch, count}, blank, inputs.options());
        if (labels > 0) {
            const dp::Tensor taken = results_of(
                dp::ops::Gather{},
                {view_of(targets.to(log_probs.device(), at::kLong).reshape({-1})),
                 view_of(on_device(places(targets, target_lengths, labels), log_probs))})[0];
            classes.slice(1, 1, count, 2)
                .copy_(new_tensor(taken, log_probs.device()).view({batch, labels}));
        }
        const at::Tensor all = classes.unsqueeze(0).expand({time, -1, -1}).contiguous();
        scores = new_tensor(results_of(dp::ops::Gather{.mode = "elements", .dim = 2},
                                       {view_of(log_probs.contiguous()), view_of(all)})[0],
                            log_probs.device());
        skips = at::zeros({batch, count}, inputs.options().dtype(at::kBool));
        if (count > 2)
            skips.slice(1, 2).copy_(classes.slice(1, 2).ne(classes.slice(1, 0, count - 2)));
    }

    /// Room for a recurrence, with two states in front and two behind that are never reached.
    at::Tensor room(const at::Tensor& like) const {
        return at::full({time, batch, count + 4}, -std::numeric_limits<double>::infinity(),
                        like.options());
    }
    at::Tensor part(const at::Tensor& room, std::int64_t t, std::int64_t offset) const {
        return room.select(0, t).narrow(1, 2 + offset, count);
    }

  private:
    /// Where each label of each sample lies in the targets; 0 behind a sample's last.
    static std::vector<std::int64_t> places(const at::Tensor& targets, Ints target_lengths,
                                            std::int64_t labels) {
        std::vector<std::int64_t> all;
        std::int64_t begin = 0;
        for (const std::int64_t length : target_lengths) {
            for (std::int64_t i = 0; i < labels; ++i) all.push_back(i < length ? begin + i : 0);
            begin += targets.dim() == 2 ? targets.size(1) : length;
        }
        return all;
    }
};

/// The logarithm of a sum of exponentials of a, b and c, of which all may be -inf.
constexpr const char* log_sum =
    "m = max(a, max(b, c)); l = m == -inf ? -inf : m + log(exp(a - m) + exp(b - m) + exp(c - m)); ";

void check(const at::Tensor& log_probs, const at::Tensor& targets, Ints input_lengths,
           Ints target_lengths, std::int64_t blank) {
    TORCH_CHECK(log_probs.dim() == 3, "ctc_loss needs log_probs [T, N, C], not ",
                log_probs.sizes());
    const auto batch = static_cast<std::size_t>(log_probs.size(1));
    TORCH_CHECK(blank >= 0 && blank < log_probs.size(2), "blank must be in label range");
    TORCH_CHECK(input_lengths.size() == batch, "input_lengths must be of size batch_size");
    TORCH_CHECK(target_lengths.size() == batch, "target_lengths must be of size batch_size");
    TORCH_CHECK(at::isIntegralType(targets.scalar_type(), false),
                "ctc_loss needs targets of an integral type, not ", targets.scalar_type());
    std::int64_t total = 0;
    for (std::size_t b = 0; b < batch; ++b) {
        TORCH_CHECK(input_lengths[b] >= 0 && input_lengths[b] <= log_probs.size(0),
                    "Expected input_lengths to have value at most ", log_probs.size(0),
                    ", but got value ", input_lengths[b]);
        TORCH_CHECK(
            target_lengths[b] >= 0 && (targets.dim() == 1 || target_lengths[b] <= targets.size(1)),
            "target_lengths do not fit targets of shape ", targets.sizes());
        total += target_lengths[b];
    }
    TORCH_CHECK(targets.dim() == 1 ? targets.size(0) == total
                                   : targets.dim() == 2 && targets.size(0) == log_probs.size(1),
                "targets of shape ", targets.sizes(), " do not fit their lengths");
}

std::tuple<at::Tensor, at::Tensor> ctc_loss_forward(const at::Tensor& log_probs,
                                                    const at::Tensor& targets, Ints input_lengths,
                                                    Ints target_lengths, std::int64_t blank,
                                                    bool zero_infinity) {
    if (log_probs.numel() == 0)
        return on_cpu<at::_ops::_ctc_loss>(log_probs, targets, input_lengths, target_lengths, blank,
                                           zero_infinity);
    check(log_probs, targets, input_lengths, target_lengths, blank);
    const c10::DeviceGuard guard(log_probs.device());
    const States states(log_probs, targets, input_lengths, target_lengths, blank);
    const at::Tensor alphas = states.room(log_probs);
    pointwise_into({states.part(alphas, 0, 0)},
                   "y0 = index(1) == 0 || (index(1) == 1 && x1 > 0) ? x0 : -inf",
                   {states.scores.select(0, 0), states.lengths});
    const std::string step = std::string("a = x0; b = x1; c = x3 != 0 ? x2 : -inf; ")
                                 .append(log_sum)
                                 .append("y0 = l + x4");
    for (std::int64_t t = 1; t < states.time; ++t)
        pointwise_into({states.part(alphas, t, 0)}, step,
                       {states.part(alphas, t - 1, 0), states.part(alphas, t - 1, -1),
                        states.part(alphas, t - 1, -2), states.skips, states.scores.select(0, t)});
    // A sample ends in the blank behind its last label, or in that label.
    std::vector<std::int64_t> ends;
    for (std::size_t b = 0; b < input_lengths.size(); ++b) {
        const std::int64_t t = std::max<std::int64_t>(input_lengths[b] - 1, 0);
        const std::int64_t row =
            (t * states.batch + static_cast<std::int64_t>(b)) * (states.count + 4);
        ends.insert(ends.end(), {row + 2 + 2 * target_lengths[b], row + 1 + 2 * target_lengths[b]});
    }
    const at::Tensor last =
        new_tensor(results_of(dp::ops::Gather{},
                              {view_of(alphas.view({-1})), view_of(on_device(ends, log_probs))})[0],
                   log_probs.device());
    const at::Tensor pairs = last.view({states.batch, 2});
    at::Tensor loss = at::empty({states.batch}, log_probs.options());
    pointwise_into({loss},
                   std::string("a = x0; b = x1; c = -inf; ")
                       .append(log_sum)
                       .append("y0 = x2 > 0 ? -l : x3 > 0 ? inf : 0"),
                   {pairs.select(1, 0), pairs.select(1, 1), states.inputs.select(1, 0),
                    states.lengths.select(1, 0)});
    return {loss, alphas.narrow(2, 2, states.count).transpose(0, 1).contiguous()};
}

/// Adds the logarithms of the sums over the alignments that follow.
at::Tensor betas_of(const States& states, const at::Tensor& log_probs) {
    const at::Tensor betas = states.room(log_probs);
    const at::Tensor blocked = at::zeros({states.batch, states.count}, states.skips.options());
    // Whether state s + 2 may follow s.
    if (states.count > 2) blocked.slice(1, 0, states.count - 2).copy_(states.skips.slice(1, 2));
    const std::string step = std::string("a = x0; b = x1; c = x3 != 0 ? x2 : -inf; ")
                                 .append(log_sum)
                                 .append(
                                     "e = index(1) == 2 * x6 || index(1) == 2 * x6 - 1 ? 0 : -inf; "
                                     "y0 = p0 > x5 - 1 ? -inf : p0 == x5 - 1 ? e + x4 : l + x4");
    const at::Tensor none = states.room(log_probs).narrow(0, 0, 1);
    for (std::int64_t t = states.time - 1; t >= 0; --t) {
        const at::Tensor& from = t + 1 < states.time ? betas : none;
        const std::int64_t next = t + 1 < states.time ? t + 1 : 0;
        pointwise_into(
            {states.part(betas, t, 0)}, step,
            {states.part(from, next, 0), states.part(from, next, 1), states.part(from, next, 2),
             blocked, states.scores.select(0, t), states.inputs, states.lengths},
            {t});
    }
    return betas;
}

at::Tensor ctc_loss_backward(const at::Tensor& grad, const at::Tensor& log_probs,
                             const at::Tensor& targets, Ints input_lengths, Ints target_lengths,
                             const at::Tensor& loss, const at::Tensor& log_alpha,
                             std::int64_t blank, bool zero_infinity) {
    const c10::DeviceGuard guard(log_probs.device());
    at::Tensor out = at::empty(log_probs.sizes(), log_probs.options());
    if (out.numel() == 0) return out;
    const States states(log_probs, targets, input_lengths, target_lengths, blank);
    const at::Tensor betas = betas_of(states, log_probs);
    // The probability of each state at each step among all alignments.
    at::Tensor shares = at::empty({states.time, states.batch, states.count}, log_probs.options());
    pointwise_into({shares}, "y0 = x0 == -inf || x1 == -inf ? 0 : exp(x0 + x1 - x2 + x3)",
                   {log_alpha.transpose(0, 1), betas.narrow(2, 2, states.count), states.scores,
                    loss.view({1, -1, 1})});
    const std::vector<std::int64_t> sizes{states.time, states.batch, states.count,
                                          log_probs.size(2)};
    pointwise_into({out}, "y0 = sum[2](x1 == index(3) ? x0 : 0)",
                   {shares.unsqueeze(3).expand(sizes), states.classes.unsqueeze(0).unsqueeze(3)},
                   {}, false);
    pointwise_into(
        {out},
        "y0 = index(0) >= x4 || (p0 != 0 && x2 == inf) ? 0 : x2 == inf ? inf - inf : "
        "(exp(x1) - x0) * x3",
        {out, log_probs, loss.view({1, -1, 1}), grad.view({1, -1, 1}), states.inputs.unsqueeze(0)},
        {zero_infinity ? 1.0 : 0.0});
    return out;
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
    m.impl("_ctc_loss", ctc_loss_forward);
    m.impl("_ctc_loss_backward", ctc_loss_backward);
}

}  // namespace
}  // namespace dlprim_torch
