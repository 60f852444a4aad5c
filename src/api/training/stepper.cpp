// SPDX-License-Identifier: MIT
// Stepper.
#include "api/training/stepper.hpp"

#include "api/net_core.hpp"

#include <cmath>

namespace dlprim {

Stepper::Stepper(Net& net, Solver& solver, const Roles& roles, int last_shard)
    : last_shard_(last_shard) {
    losses_.emplace_back(core_of(net).output(roles.loss));
    for (const std::string& name : net.loss_names())
        if (name != roles.loss) losses_.emplace_back(core_of(net).output(name));
    if (roles.scores.empty()) return;
    const Tensor whole = solver.output_of_batch(roles.scores);
    scores_shape_ = whole.shape();
    scores_.emplace(whole);
}

void Stepper::keep(int shard) {
    if (shard != last_shard_) return;
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
