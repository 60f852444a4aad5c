// SPDX-License-Identifier: MIT
// Stepper.
#include "api/training/stepper.hpp"

#include <cmath>

namespace dlprim {

Stepper::Stepper(const TrainedNet& net, const Roles& roles, int first_shard, int shards)
    : first_(first_shard), shards_(shards) {
    read_losses(net, roles);
    if (roles.scores.empty()) return;
    shard_scores_ = net.output(roles.scores);
    if (shards_ > 1) gathered_.emplace(roles.scores, shard_scores_, shards_);
    read_scores(gathered_ ? gathered_->whole() : shard_scores_);
}

Stepper::Stepper(PlacedNet& net, PlacedSolver& solver, const Roles& roles) {
    read_losses(net, roles);
    if (!roles.scores.empty()) read_scores(solver.output_of_batch(roles.scores));
}

void Stepper::read_losses(const TrainedNet& net, const Roles& roles) {
    losses_.emplace_back(net.output(roles.loss));
    for (const std::string& name : net.loss_names())
        if (name != roles.loss) losses_.emplace_back(net.output(name));
}

void Stepper::read_scores(const Tensor& whole) {
    scores_shape_ = whole.shape();
    scores_.emplace(whole);
}

void Stepper::keep(int shard) {
    const int index = shard - first_;
    if (gathered_) gathered_->keep(shard_scores_, index);
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
