// SPDX-License-Identifier: MIT
// Sampler: chooses a token by its logits.
#pragma once

#include <dlprim/language.hpp>

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace dlprim::language {

class Sampler {
  public:
    /// Throws Error(invalid_argument) for options that make no sense.
    explicit Sampler(const GenerateOptions& options);

    struct Choice {
        std::int32_t token;
        double log_probability;                      ///< if asked for
        std::vector<TokenProbability> alternatives;  ///< if asked for
    };
    /// Chooses the token number `step` of a text: by `seed` and `step` alone, with the same logits
    /// behind the same tokens. Of equal logits the first counts as the likelier. Throws
    /// Error(numeric) for logits that are NaN.
    Choice choose(std::span<const float> logits, std::span<const std::int32_t> before,
                  std::uint64_t step);

    bool gives_log_probabilities() const { return log_probabilities_; }

  private:
    std::vector<float> penalized(std::span<const float> given,
                                 std::span<const std::int32_t> before) const;
    /// `best` is the largest of the logits.
    std::int32_t choose_token(std::span<const float> logits, float best, std::uint64_t step);

    double penalty_, temperature_, top_p_, min_p_;
    std::int64_t window_, top_k_, alternatives_;
    bool log_probabilities_;
    std::uint64_t seed_;
    std::vector<std::int32_t> order_;    ///< tokens, the likeliest first as far as they count
    std::vector<double> probabilities_;  ///< of these, not yet divided by their sum
};

/// The logarithm of the sum of the exponentials of all logits, by which a log-probability is less
/// than a logit.
double log_sum(std::span<const float> logits);

}  // namespace dlprim::language
