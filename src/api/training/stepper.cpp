// SPDX-License-Identifier: MIT
// Stepper.
#include "api/training/stepper.hpp"

#include "base/text.hpp"

#include <cmath>
#include <cstdint>

namespace dlprim {

Stepper::Stepper(const TrainedNet& net, const Roles& roles, int first_shard, int shards)
    : first_(first_shard), shards_(shards) {
    losses_.emplace_back(net.output(roles.loss));
    for (const std::string& name : net.loss_names())
        if (name != roles.loss) losses_.emplace_back(net.output(name));
    if (roles.scores.empty()) return;
    shard_scores_ = batch_scores_ = net.output(roles.scores);
    scores_shape_ = shard_scores_.shape();
    if (shards_ > 1) {
        require(scores_shape_.rank() > 0, "output '", roles.scores,
                "' is one number, and shards are judged together: it needs a row for each example");
        scores_shape_ = scores_shape_.with(0, scores_shape_[0] * shards_);
        batch_scores_ = Tensor(shard_scores_.context(), scores_shape_, shard_scores_.dtype());
    }
    scores_.emplace(batch_scores_);
}

void Stepper::keep(int shard) {
    const int index = shard - first_;
    if (scores_ && shards_ > 1) {
        const std::uint64_t bytes = shard_scores_.bytes();
        Access::impl(shard_scores_.context())
            .queue()
            .copy({Access::buffer(shard_scores_).get(), shard_scores_.byte_offset()},
                  {Access::buffer(batch_scores_).get(),
                   batch_scores_.byte_offset() + bytes * static_cast<std::uint64_t>(index)},
                  bytes);
    }
    if (index + 1 < shards_) return;
    for (LateOutput& loss : losses_) loss.read();
    if (scores_) scores_->read();
}

Stepper::Outcome Stepper::take() {
    Outcome outcome;
    // Wait for the last read first: then all earlier ones are complete.
    if (scores_) outcome.scores = scores_->take();
    std::vector<std::vector<float>> losses(losses_.size());
    for (std::size_t i = losses.size(); i-- > 0;) losses[i] = losses_[i].take();
    outcome.loss = losses.at(0).at(0);
    for (const std::vector<float>& values : losses) {
        for (const float value : values) {
            if (std::isfinite(value) || !outcome.finite) continue;
            outcome.finite = false;
            outcome.loss = value;
        }
    }
    return outcome;
}

}  // namespace dlprim
