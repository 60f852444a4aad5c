// SPDX-License-Identifier: MIT
// The loss of connectionist temporal classification: all alignments of labels with a sequence.
//
// Labels with blanks between them and around are the states, and alpha[t, n, s] is the logarithm of
// the probability that sample n is in state s after t + 1 steps. A step is one program for all
// samples and states. Two columns of -infinity stand in front of the states (and behind those of
// beta, which walks from the end), so that views one and two columns aside are what a state is
// reached from.
#include "ops/indexing.hpp"
#include "ops/kernels.hpp"

#include <ATen/NativeFunctions.h>

#include <limits>
#include <tuple>

namespace dlprim_torch {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// The sum of three probabilities by which a state is reached; of the third where x3 is true.
const char* const reached =
    "c = x3 != 0 ? x2 : -inf; m = max(max(x0, x1), c); n = m == -inf ? 0 : m; "
    "r = log(exp(x0 - n) + exp(x1 - n) + exp(c - n)) + n + x4; ";

struct States {
    at::Tensor labels;    ///< with blanks: int64 [N, 2 * S + 1]
    at::Tensor skips;     ///< whether a state is reached from the one two before: bool
    at::Tensor emitted;   ///< logarithms of probabilities of the states' labels: [T, N, 2 * S + 1]
    std::int64_t number;  ///< 2 * S + 1
};

/// Integers of the host on the device of `like`, [N, 1].
at::Tensor column(Ints values, const at::Tensor& like) {
    return at::tensor(values, at::TensorOptions(at::kLong)).to(like.device()).unsqueeze(1);
}

/// The labels of all samples as [N, S]. What is behind a sample's last one is blank.
at::Tensor padded(const at::Tensor& targets, Ints lengths, std::int64_t longest,
                  std::int64_t blank) {
    const auto samples = static_cast<std::int64_t>(lengths.size());
    const at::Tensor places = at::zeros({samples, longest}, at::kLong),
                     counts = at::zeros({samples, longest}, at::kBool);
    std::int64_t begin = 0;
    for (std::int64_t n = 0; n < samples; ++n) {
        const std::int64_t length = lengths[static_cast<std::size_t>(n)];
        const std::int64_t first = targets.dim() == 1 ? begin : n * targets.size(1);
        places[n].narrow(0, 0, length).copy_(at::arange(first, first + length));
        counts[n].narrow(0, 0, length).fill_(true);
        begin += length;
    }
    const at::Tensor labels = targets.to(at::kLong).take(places.to(targets.device()));
    return at::where(counts.to(targets.device()), labels, blank);
}

States states_of(const at::Tensor& log_probs, const at::Tensor& targets, Ints lengths,
                 std::int64_t blank) {
    std::int64_t longest = 0;
    for (const std::int64_t length : lengths) longest = std::max(longest, length);
    States made{
        at::full({log_probs.size(1), 2 * longest + 1}, blank, log_probs.options().dtype(at::kLong)),
        {},
        {},
        2 * longest + 1};
    made.skips = at::zeros(made.labels.sizes(), made.labels.options().dtype(at::kBool));
    if (longest > 0) {
        const at::Tensor labels = padded(targets, lengths, longest, blank);
        made.labels.slice(1, 1, made.number, 2).copy_(labels);
        if (longest > 1)
            made.skips.slice(1, 3, made.number, 2)
                .copy_(labels.narrow(1, 1, longest - 1).ne(labels.narrow(1, 0, longest - 1)));
    }
    made.emitted = log_probs.gather(
        2, made.labels.unsqueeze(0).expand({log_probs.size(0), log_probs.size(1), made.number}));
    return made;
}

void check(const at::Tensor& log_probs, const at::Tensor& targets, Ints input_lengths,
           Ints target_lengths, std::int64_t blank) {
    TORCH_CHECK(log_probs.dim() == 3, "log_probs must be a 3D tensor (T, N, C), got ",
                log_probs.dim(), "D");
    const auto samples = static_cast<std::size_t>(log_probs.size(1));
    TORCH_CHECK(blank >= 0 && blank < log_probs.size(2), "blank must be in label range");
    TORCH_CHECK(input_lengths.size() == samples, "input_lengths must be of size batch_size");
    TORCH_CHECK(target_lengths.size() == samples, "target_lengths must be of size batch_size");
    std::int64_t total = 0;
    for (std::size_t n = 0; n < samples; ++n) {
        TORCH_CHECK(input_lengths[n] >= 0 && input_lengths[n] <= log_probs.size(0),
                    "Expected input_lengths to have value at most ", log_probs.size(0),
                    ", but got value ", input_lengths[n]);
        TORCH_CHECK(
            target_lengths[n] >= 0 && (targets.dim() == 1 || target_lengths[n] <= targets.size(1)),
            "Expected target_lengths to be between 0 and ", targets.size(-1), ", but got value ",
            target_lengths[n]);
        total += target_lengths[n];
    }
    TORCH_CHECK(targets.dim() != 1 || total == targets.numel(), "Expected targets of ", total,
                " labels, but got ", targets.numel());
}

bool takes_log_probs(const at::Tensor& log_probs) {
    return (log_probs.scalar_type() == at::kFloat || log_probs.scalar_type() == at::kDouble) &&
           log_probs.numel() > 0;
}

/// The loss of each sample from alpha: its last step in the last label and in the blank behind it.
at::Tensor loss_of(const at::Tensor& alpha, Ints input_lengths, Ints target_lengths) {
    const std::int64_t samples = alpha.size(1), width = alpha.size(2);
    const at::Tensor places = at::zeros({2, samples}, at::kLong), fixed = at::zeros({samples});
    bool all_run = true;
    for (std::int64_t n = 0; n < samples; ++n) {
        const std::int64_t steps = input_lengths[static_cast<std::size_t>(n)],
                           labels = target_lengths[static_cast<std::size_t>(n)];
        const std::int64_t last =
            (std::max<std::int64_t>(steps - 1, 0) * samples + n) * width + 2 + 2 * labels;
        places[0][n].fill_(last);
        places[1][n].fill_(last - 1);  // without labels a column of -infinity
        fixed[n].fill_(steps > 0 ? std::nan("") : labels == 0 ? 0 : infinity);
        all_run = all_run && steps > 0;
    }
    const at::Tensor ends = alpha.take(places.to(alpha.device()));
    const at::Tensor loss = at::logaddexp(ends[0], ends[1]).neg();
    if (all_run) return loss;
    const at::Tensor known = fixed.to(alpha.device(), alpha.scalar_type());
    return at::where(known.isnan(), loss, known);
}

std::tuple<at::Tensor, at::Tensor> forward(const at::Tensor& log_probs, const at::Tensor& targets,
                                           Ints input_lengths, Ints target_lengths,
                                           std::int64_t blank, bool zero_infinity) {
    check(log_probs, targets, input_lengths, target_lengths, blank);
    const c10::DeviceGuard guard(log_probs.device());
    const States states = states_of(log_probs, targets, target_lengths, blank);
    const std::int64_t steps = log_probs.size(0), number = states.number;
    const at::Tensor alpha =
        at::full({steps, log_probs.size(1), number + 2}, -infinity, log_probs.options());
    const std::int64_t starts = std::min<std::int64_t>(number, 2);
    alpha[0].narrow(1, 2, starts).copy_(states.emitted[0].narrow(1, 0, starts));
    for (std::int64_t t = 1; t < steps; ++t) {
        const at::Tensor before = alpha[t - 1];
        pointwise_into({alpha[t].narrow(1, 2, number)}, std::string(reached) + "y0 = r",
                       {before.narrow(1, 2, number), before.narrow(1, 1, number),
                        before.narrow(1, 0, number), states.skips, states.emitted[t]});
    }
    return {loss_of(alpha, input_lengths, target_lengths), alpha};
}

/// beta[t, n, s]: of the probability of all that follows from state s at step t on.
at::Tensor beta_of(const States& states, Ints input_lengths, Ints target_lengths) {
    const std::int64_t steps = states.emitted.size(0), number = states.number;
    const at::Tensor beta =
        at::full({steps, states.emitted.size(1), number + 2}, -infinity, states.emitted.options());
    const at::Tensor skips = at::zeros_like(states.skips);
    if (number > 2) skips.narrow(1, 0, number - 2).copy_(states.skips.narrow(1, 2, number - 2));
    const at::Tensor length = column(input_lengths, beta), labels = column(target_lengths, beta);
    const at::Tensor none = at::full({1, number + 2}, -infinity, beta.options());
    for (std::int64_t t = steps - 1; t >= 0; --t) {
        const at::Tensor after = t + 1 < steps ? beta[t + 1] : none;
        pointwise_into({beta[t].narrow(1, 0, number)},
                       std::string(reached) +
                           "e = 2 * x6 - index(1); y0 = x5 != p0 ? r : "
                           "e == 0 || e == 1 ? x4 : -inf",
                       {after.narrow(1, 0, number), after.narrow(1, 1, number),
                        after.narrow(1, 2, number), skips, states.emitted[t], length, labels},
                       {static_cast<double>(t + 1)});
    }
    return beta.narrow(2, 0, number);
}

at::Tensor backward(const at::Tensor& grad, const at::Tensor& log_probs, const at::Tensor& targets,
                    Ints input_lengths, Ints target_lengths, const at::Tensor& loss,
                    const at::Tensor& alpha, std::int64_t blank, bool zero_infinity) {
    if (!takes_log_probs(log_probs))
        return on_cpu<at::_ops::_ctc_loss_backward>(grad, log_probs, targets, input_lengths,
                                                    target_lengths, loss, alpha, blank,
                                                    zero_infinity);
    const c10::DeviceGuard guard(grad.device());
    const States states = states_of(log_probs, targets, target_lengths, blank);
    const at::Tensor beta = beta_of(states, input_lengths, target_lengths);
    const at::Tensor shares = at::empty(states.emitted.sizes(), states.emitted.options());
    const at::Tensor each = loss.view({1, -1, 1});
    pointwise_into({shares}, "y0 = exp((x0 + x3) + (x1 - x2))",
                   {alpha.narrow(2, 2, states.number), beta, states.emitted, each});
    const at::Tensor sums =
        at::zeros(log_probs.sizes(), log_probs.options())
            .scatter_add(2, states.labels.unsqueeze(0).expand(shares.sizes()), shares);
    const at::Tensor made = at::empty(log_probs.sizes(), log_probs.options());
    pointwise_into(
        {made}, "y0 = index(0) >= x3 || p0 != 0 && x4 == inf ? 0 : (exp(x0) - x1) * x2",
        {log_probs, sums, grad.view({1, -1, 1}), column(input_lengths, grad).unsqueeze(0), each},
        {zero_infinity ? 1.0 : 0.0});
    return made;
}

DLPRIM_TORCH_KERNELS(m) {
    m.where(takes_log_probs).impl("_ctc_loss", forward);
    m.impl("_ctc_loss_backward", backward);
    m.impl("_ctc_loss.Tensor", at::native::ctc_loss_tensor);  // reads the lengths, and calls these
    m.impl("_ctc_loss_backward.Tensor", at::native::ctc_loss_backward_tensor);
}

}  // namespace
}  // namespace dlprim_torch
