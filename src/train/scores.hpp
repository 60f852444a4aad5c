// SPDX-License-Identifier: MIT
// Scores: a net's outputs as scores of classes, and the classes that they should name.
#pragma once

#include "base/text.hpp"
#include "train/metrics.hpp"

#include <cstddef>
#include <cstdint>

namespace dlprim {

/// Scores of classes for each target. In images [N, C, ...] the scores of a place lie a plane
/// apart; otherwise they lie side by side.
class Scores {
  public:
    /// Throws Error(invalid_argument) if outputs and class numbers do not fit together.
    explicit Scores(const Judged& batch) : batch_(batch) {
        const auto targets = static_cast<std::int64_t>(batch.classes.size());
        const auto outputs = static_cast<std::int64_t>(batch.outputs.size());
        require(targets > 0 && outputs % targets == 0, "outputs of shape ", batch.shape.str(),
                " cannot be judged by ", targets, " class numbers");
        classes_ = outputs / targets;
        if (batch.shape.rank() > 2 && batch.shape[1] == classes_)
            places_ = batch.shape.numel() / batch.shape[0] / classes_;
    }
    std::int64_t classes() const { return classes_; }
    /// Targets of each example: 1, or the pixels of a picture.
    std::int64_t places() const { return places_; }
    std::int32_t label(std::int64_t target) const {
        return batch_.classes[static_cast<std::size_t>(target)];
    }
    /// Whether the target is judged at all.
    bool counts(std::int64_t target) const { return label(target) != batch_.ignored; }
    std::int64_t targets() const { return static_cast<std::int64_t>(batch_.classes.size()); }
    /// The class with the largest score, of equal ones the first.
    std::int64_t best(std::int64_t target) const {
        const float* scores = of(target);
        std::int64_t best = 0;
        for (std::int64_t c = 1; c < classes_; ++c)
            if (scores[best * places_] < scores[c * places_]) best = c;
        return best;
    }
    float score(std::int64_t target, std::int64_t c) const { return of(target)[c * places_]; }
    /// How many classes come before the target's own when scores are sorted.
    std::int64_t rank(std::int64_t target) const {
        const std::int64_t own = label(target);
        if (own < 0 || own >= classes_) return classes_;
        const float* scores = of(target);
        const float own_score = scores[own * places_];
        std::int64_t before = 0;
        for (std::int64_t c = 0; c < classes_; ++c) {
            const float score = scores[c * places_];
            before += score > own_score || (score == own_score && c < own);
        }
        return before;
    }

  private:
    /// The score of class 0, from which the others follow in steps of places_.
    const float* of(std::int64_t target) const {
        const std::int64_t example = target / places_, place = target % places_;
        return batch_.outputs.data() + example * classes_ * places_ + place;
    }

    const Judged& batch_;
    std::int64_t classes_ = 0, places_ = 1;
};

}  // namespace dlprim
