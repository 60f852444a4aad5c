// SPDX-License-Identifier: MIT
// Findings: what a net makes of a test set, example by example: which classes it takes for which,
// how numbers differ from their targets, and the examples of which it is most wrong.
#pragma once

#include "api/training/feeder.hpp"
#include "train/dataset.hpp"

#include <dlprim/shape.hpp>

#include <nlohmann/json.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace dlprim {

/// An example that came out wrong.
struct Mistake {
    std::int64_t index = 0;          ///< in its data set
    double wrong = 0;                ///< how wrong: the larger, the worse
    std::int32_t target = -1;        ///< its class, or the place of the worst number
    std::int32_t predicted = -1;     ///< the class that it was taken for
    double output = 0;               ///< the probability of that class, or the worst number
    double wanted = 0;               ///< the probability of its own class, or the number's target
    std::vector<std::int32_t> mask;  ///< of pixels: the classes found
};

class Findings {
  public:
    /// `most`: how many mistakes are kept.
    Findings(TargetKind kind, std::size_t most) : kind_(kind), most_(most) {}

    void restart();
    /// A batch. Throws Error(invalid_argument) if outputs and targets do not fit together.
    void add(std::span<const float> outputs, const Shape& shape, const Targets& targets);

    /// The worst first.
    const std::vector<Mistake>& mistakes() const { return mistakes_; }
    /// What a page shows of it, besides the mistakes (docs/report.md).
    nlohmann::ordered_json json(const std::vector<std::string>& classes) const;

  private:
    void add_classes(std::span<const float> outputs, const Shape& shape, const Targets& targets);
    void add_values(std::span<const float> outputs, const Targets& targets);
    void add_mistake(Mistake mistake);
    /// Whether all targets were 0 or 1, so that they are labels.
    bool is_yes_or_no() const { return yes_or_no_ && !labels_.empty(); }
    nlohmann::ordered_json confusion(const std::vector<std::string>& classes) const;
    nlohmann::ordered_json labels(const std::vector<std::string>& classes) const;

    TargetKind kind_;
    std::size_t most_;
    std::int64_t examples_ = 0;
    std::vector<Mistake> mistakes_;

    std::int64_t classes_ = 0;
    std::vector<std::int64_t> counts_;  ///< [classes, classes]: target, found

    /// Of one place of the targets, how often was said yes where that was right, and so on.
    struct YesOrNo {
        std::int64_t right_yes = 0, wrong_yes = 0, missed = 0;
    };
    std::vector<YesOrNo> labels_;
    bool yes_or_no_ = true;
    /// Some pairs of target and output: every points_step_-th of all.
    std::vector<std::pair<float, float>> points_;
    std::int64_t points_seen_ = 0, points_step_ = 1;
};

}  // namespace dlprim
