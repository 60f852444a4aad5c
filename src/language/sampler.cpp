// SPDX-License-Identifier: MIT
// Choice of a token: greedy, or at random among the likeliest.
#include "language/sampler.hpp"

#include "base/philox.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace dlprim::language {

Sampler::Sampler(const GenerateOptions& options)
    : temperature_(options.temperature),
      top_p_(options.top_p),
      top_k_(options.top_k),
      seed_(options.seed) {
    require(temperature_ >= 0 && temperature_ <= 1e6, "a temperature is 0 or more, not ",
            temperature_);
    require(top_p_ > 0 && top_p_ <= 1, "top_p is a probability above 0, not ", top_p_);
    require(top_k_ >= 0, "top_k is a number of tokens, or 0 for all, not ", top_k_);
}

std::int32_t Sampler::choose(std::span<const float> logits, std::uint64_t step) {
    if (std::any_of(logits.begin(), logits.end(), [](float value) { return std::isnan(value); }))
        fail(ErrorKind::numeric,
             "the model's logits are not numbers: its weights are damaged, or "
             "too large for the precision");
    const auto likelier = [&](std::int32_t a, std::int32_t b) {
        const float left = logits[static_cast<std::size_t>(a)];
        const float right = logits[static_cast<std::size_t>(b)];
        return left > right || (left == right && a < b);
    };
    if (temperature_ == 0)
        return static_cast<std::int32_t>(std::max_element(logits.begin(), logits.end()) -
                                         logits.begin());
    order_.resize(logits.size());
    std::iota(order_.begin(), order_.end(), 0);
    if (top_k_ > 0 && top_k_ < std::ssize(order_)) {
        std::nth_element(order_.begin(), order_.begin() + top_k_ - 1, order_.end(), likelier);
        order_.resize(static_cast<std::size_t>(top_k_));
    }
    std::sort(order_.begin(), order_.end(), likelier);
    const double best = logits[static_cast<std::size_t>(order_.front())];
    probabilities_.clear();
    for (const std::int32_t token : order_)
        probabilities_.push_back(
            std::exp((logits[static_cast<std::size_t>(token)] - best) / temperature_));
    const double all = std::accumulate(probabilities_.begin(), probabilities_.end(), 0.0);
    double sum = 0;
    std::size_t count = 0;
    while (count < order_.size() && (count == 0 || sum < top_p_ * all))
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
