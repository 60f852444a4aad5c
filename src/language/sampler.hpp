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

    /// Chooses the token number `step` of a text: by `seed` and `step` alone, with the same logits.
    /// Of equal logits the first counts as the likelier. Throws Error(numeric) for logits that are
    /// NaN.
    std::int32_t choose(std::span<const float> logits, std::uint64_t step);

  private:
    double temperature_, top_p_;
    std::int64_t top_k_;
    std::uint64_t seed_;
    std::vector<std::int32_t> order_;    ///< tokens, the likeliest first as far as they count
    std::vector<double> probabilities_;  ///< of these, not yet divided by their sum
};

}  // namespace dlprim::language
