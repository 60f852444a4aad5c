// SPDX-License-Identifier: MIT
// Choice of a token: greedy, or at random among the likeliest.
#include "language/sampler.hpp"

#include "base/philox.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

namespace dlprim::language {

namespace {

/// Whether token a is likelier than token b, by their logits.
struct Likelier {
    std::span<const float> logits;
    bool operator()(std::int32_t a, std::int32_t b) const {
        const float left = logits[static_cast<std::size_t>(a)];
        const float right = logits[static_cast<std::size_t>(b)];
        return left > right || (left == right && a < b);
    }
};

/// The largest of the logits. Throws Error(numeric) if one is no number.
float largest(std::span<const float> logits) {
    // Sixteen maxima that compilers keep in vectors: there is a logit for every word.
    constexpr std::size_t lanes = 16;
    std::array<float, lanes> best;
    best.fill(-std::numeric_limits<float>::infinity());
    std::array<std::int32_t, lanes> numbers;
    numbers.fill(1);
    std::size_t i = 0;
    for (; i + lanes <= logits.size(); i += lanes)
        for (std::size_t lane = 0; lane < lanes; ++lane) {
            const float logit = logits[i + lane];
            best[lane] = logit > best[lane] ? logit : best[lane];
            numbers[lane] &= static_cast<std::int32_t>(logit == logit);
        }
    for (; i < logits.size(); ++i) {
        best[0] = std::max(best[0], logits[i]);
        numbers[0] &= static_cast<std::int32_t>(logits[i] == logits[i]);
    }
    if (*std::min_element(numbers.begin(), numbers.end()) == 0)
        fail(ErrorKind::numeric,
             "the model's logits are not numbers: its weights are damaged, or "
             "too large for the precision");
    return *std::max_element(best.begin(), best.end());
}

std::vector<TokenProbability> likeliest(std::span<const float> logits, std::int64_t count,
                                        double sum) {
    std::vector<std::int32_t> order(logits.size());
    std::iota(order.begin(), order.end(), 0);
    const auto end = order.begin() + std::min<std::int64_t>(count, std::ssize(order));
    std::partial_sort(order.begin(), end, order.end(), Likelier{logits});
    std::vector<TokenProbability> result;
    for (auto token = order.begin(); token != end; ++token)
        result.push_back({*token, logits[static_cast<std::size_t>(*token)] - sum});
    return result;
}

}  // namespace

double log_sum(std::span<const float> logits) {
    const double best = *std::max_element(logits.begin(), logits.end());
    double sum = 0;
    for (const float logit : logits) sum += std::exp(logit - best);
    return best + std::log(sum);
}

Sampler::Sampler(const GenerateOptions& options)
    : penalty_(options.repetition_penalty),
      temperature_(options.temperature),
      top_p_(options.top_p),
      min_p_(options.min_p),
      window_(options.repetition_window),
      top_k_(options.top_k),
      alternatives_(options.alternatives),
      log_probabilities_(options.log_probabilities || options.alternatives > 0),
      seed_(options.seed) {
    require(penalty_ > 0 && penalty_ <= 1e6, "a repetition penalty is above 0, not ", penalty_);
    require(window_ >= 0, "the window of the repetition penalty is a number of tokens, or 0 for ",
            "all, not ", window_);
    require(temperature_ >= 0 && temperature_ <= 1e6, "a temperature is 0 or more, not ",
            temperature_);
    require(top_p_ > 0 && top_p_ <= 1, "top_p is a probability above 0, not ", top_p_);
    require(min_p_ >= 0 && min_p_ <= 1, "min_p is a number from 0 to 1, not ", min_p_);
    require(top_k_ >= 0, "top_k is a number of tokens, or 0 for all, not ", top_k_);
    require(alternatives_ >= 0, "the number of alternatives is 0 or more, not ", alternatives_);
}

std::vector<float> Sampler::penalized(std::span<const float> given,
                                      std::span<const std::int32_t> before) const {
    std::vector<float> logits(given.begin(), given.end());
    if (window_ > 0 && std::ssize(before) > window_)
        before = before.last(static_cast<std::size_t>(window_));
    std::vector<std::int32_t> tokens(before.begin(), before.end());
    std::sort(tokens.begin(), tokens.end());
    tokens.erase(std::unique(tokens.begin(), tokens.end()), tokens.end());
    for (const std::int32_t token : tokens) {
        float& logit = logits[static_cast<std::size_t>(token)];
        logit = static_cast<float>(logit > 0 ? logit / penalty_ : logit * penalty_);
    }
    return logits;
}

Sampler::Choice Sampler::choose(std::span<const float> logits, std::span<const std::int32_t> before,
                                std::uint64_t step) {
    const float best = largest(logits);
    Choice choice{};
    const double sum = log_probabilities_ ? log_sum(logits) : 0;
    if (alternatives_ > 0) choice.alternatives = likeliest(logits, alternatives_, sum);
    if (penalty_ == 1) {
        choice.token = choose_token(logits, best, step);
    } else {
        const std::vector<float> changed = penalized(logits, before);
        choice.token = choose_token(changed, largest(changed), step);
    }
    if (log_probabilities_)
        choice.log_probability = logits[static_cast<std::size_t>(choice.token)] - sum;
    return choice;
}

std::int32_t Sampler::choose_token(std::span<const float> logits, float best, std::uint64_t step) {
    if (temperature_ == 0)
        return static_cast<std::int32_t>(std::find(logits.begin(), logits.end(), best) -
                                         logits.begin());
    const Likelier likelier{logits};
    order_.resize(logits.size());
    std::iota(order_.begin(), order_.end(), 0);
    if (top_k_ > 0 && top_k_ < std::ssize(order_)) {
        std::nth_element(order_.begin(), order_.begin() + top_k_ - 1, order_.end(), likelier);
        order_.resize(static_cast<std::size_t>(top_k_));
    }
    std::sort(order_.begin(), order_.end(), likelier);
    probabilities_.clear();
    for (const std::int32_t token : order_)
        probabilities_.push_back(
            std::exp((logits[static_cast<std::size_t>(token)] - double{best}) / temperature_));
    const double all = std::accumulate(probabilities_.begin(), probabilities_.end(), 0.0);
    double sum = 0;
    std::size_t count = 0;
    // The likeliest token's entry is 1, so that min_p is compared with the entries themselves.
    while (count < order_.size() &&
           (count == 0 || (sum < top_p_ * all && probabilities_[count] >= min_p_)))
        sum += probabilities_[count++];
    // 53 random bits of the generator that all random numbers of the library are of.
    const auto words =
        philox({static_cast<std::uint32_t>(step), static_cast<std::uint32_t>(step >> 32), 0, 0},
               {static_cast<std::uint32_t>(seed_), static_cast<std::uint32_t>(seed_ >> 32)});
    const std::uint64_t bits = (std::uint64_t{words[0]} << 32 | words[1]) >> 11;
    double left = static_cast<double>(bits) * 0x1p-53 * sum;
    for (std::size_t i = 0; i + 1 < count; ++i) {
        if (left < probabilities_[i]) return order_[i];
        left -= probabilities_[i];
    }
    return order_[count - 1];
}

}  // namespace dlprim::language
