// SPDX-License-Identifier: MIT
// What attention's engines of the host share: operands of heads, and masks.
#pragma once

#include "engine/element.hpp"
#include "engine/pointwise/philox.hpp"
#include "ops/attention/spans.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <span>
#include <vector>

namespace dlprim::attention {

/// What a launch on the host knows of its problem.
struct HostProblem {
    explicit HostProblem(const Problem& problem) : heads(heads_of(problem)) {
        if (heads.lengths_operand < 0) return;
        lengths.emplace(problem, heads);
        lower_right = problem.attrs.boolean("lower_right");
    }
    Heads heads;
    std::optional<SpanSizes> lengths;  ///< if there are lengths
    bool lower_right = false;
};

/// The operands of a launch on the host.
class HostHeads {
  public:
    HostHeads(const HostProblem& problem, std::span<const BufferRef> operands)
        : heads_(problem.heads), operands_(operands) {
        const Heads& heads = heads_;
        if (problem.lengths) {
            const SpanSizes& of = *problem.lengths;
            std::vector<std::int64_t> lengths(
                static_cast<std::size_t>(of.sequences + 1 + of.keys_row));
            convert(operands[static_cast<std::size_t>(heads.lengths_operand)].host(), of.dtype,
                    lengths.data(), DType::i64, lengths.size());
            spans_ = host_spans(heads, of, problem.lower_right, lengths);
        }
        if (heads.seed_operand < 0) return;
        const auto number = [&](std::size_t i) {
            return PlainElement<std::uint64_t>::load(
                operands[static_cast<std::size_t>(heads.seed_operand) + i].host(), 0);
        };
        key_ = {number(0), number(1), static_cast<std::uint64_t>(heads.stream)};
    }

    float* floats(int i) const {
        return reinterpret_cast<float*>(operands_[static_cast<std::size_t>(i)].host());
    }
    /// The element with which a head's part of an operand begins.
    std::int64_t start(const Heads::Strides& strides, std::int64_t head) const {
        std::int64_t at = 0;
        for (std::size_t d = strides.size(); d-- > 0; head /= heads_.digits[d])
            at += head % heads_.digits[d] * strides[d];
        return at;
    }
    /// Query `row` sees the positions [begin, end).
    struct Seen {
        std::int64_t begin, end;
    };
    Seen seen(std::int64_t row) const {
        const Sight& sight = heads_.sight;
        if (spans_.empty()) return {sight.begin(row), sight.end(row)};
        const std::int32_t* const span = &spans_[static_cast<std::size_t>(row) * 4];
        const std::int64_t at = row + span[2];
        return {sight.window > 0 ? std::max<std::int64_t>(at - sight.window + 1, span[0]) : span[0],
                sight.causal ? std::min<std::int64_t>(at + 1, span[1]) : span[1]};
    }
    /// A head's mask; nullptr if there is none.
    const std::byte* mask(std::int64_t head) const {
        if (heads_.mask_operand < 0 || !spans_.empty()) return nullptr;
        const std::int64_t bytes = heads_.masks == Heads::Mask::bools ? 1 : 4;
        return operands_[static_cast<std::size_t>(heads_.mask_operand)].host() +
               start(heads_.mask, head) * bytes;
    }

    /// Dropout's factor of a weight.
    double factor(std::int64_t head, std::int64_t row, std::int64_t position) const {
        if (heads_.seed_operand < 0) return 1;
        const std::int64_t place = (head * heads_.length + row) * heads_.positions + position;
        const float random = pointwise::uniform(key_, static_cast<std::uint64_t>(place));
        const bool kept = random >= static_cast<float>(heads_.dropout_p) && heads_.dropout_p < 1;
        return kept ? 1 / (1 - heads_.dropout_p) : 0;
    }

  private:
    const Heads& heads_;
    std::span<const BufferRef> operands_;
    pointwise::RandomKey key_{};
    std::vector<std::int32_t> spans_;  ///< if there are lengths
};

/// The score after a soft cap, and the derivative of that.
struct Capped {
    double score, slope;
};
inline Capped capped(const Heads& heads, double score) {
    if (heads.softcap == 0) return {score, 1};
    const double bent = std::tanh(score / heads.softcap);
    return {heads.softcap * bent, 1 - bent * bent};
}

/// The score after the mask; -infinity where the position is left out.
inline double masked_score(const Heads& heads, const std::byte* mask, std::int64_t row,
                           std::int64_t position, double score) {
    constexpr double excluded = -std::numeric_limits<double>::infinity();
    if (mask == nullptr) return score;
    const std::int64_t at = row * heads.mask_row + position * heads.mask_column;
    if (heads.masks == Heads::Mask::floats)
        return score + static_cast<double>(PlainElement<float>::load(mask, at));
    if (heads.masks == Heads::Mask::bools)
        return std::to_integer<int>(mask[at]) != 0 ? score : excluded;
    return score;
}

}  // namespace dlprim::attention
