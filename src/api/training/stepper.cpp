// SPDX-License-Identifier: MIT
// Stepper.
#include "api/training/stepper.hpp"

#include <cmath>

namespace dlprim {

Stepper::Stepper(Net& net, Solver& solver, const Roles& roles) : solver_(solver) {
    losses_.emplace_back(net.output(roles.loss));
    for (const std::string& name : net.loss_names())
        if (name != roles.loss) losses_.emplace_back(net.output(name));
    if (roles.scores.empty()) return;
    scores_.emplace(net.output(roles.scores));
    scores_shape_ = net.output(roles.scores).shape();
}

void Stepper::start(double learning_rate) {
    solver_.set_learning_rate(learning_rate);
    solver_.step();
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
