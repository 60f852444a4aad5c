// SPDX-License-Identifier: MIT
// Stepper: reads the results of a net's training steps while later steps run, so that no step waits
// for the host.
#pragma once

#include "api/late_output.hpp"
#include "api/training/roles.hpp"

#include <dlprim/solver.hpp>

#include <optional>
#include <vector>

namespace dlprim {

class Stepper {
  public:
    /// For a net and its solver that compute the shards of each batch of which this is the last.
    Stepper(Net& net, Solver& solver, const Roles& roles, int last_shard);

    /// Must be called after the step of each shard. After the last one it enqueues reads of the
    /// results of all.
    void keep(int shard);

    struct Outcome {
        double loss = 0;  ///< the first loss that is not finite, or else the first loss
        bool finite = true;
        std::vector<float> scores;  ///< empty if the net has no output besides losses
    };
    /// Waits for the oldest step whose results were not taken yet.
    Outcome take();
    const Shape& scores_shape() const { return scores_shape_; }

  private:
    std::vector<LateOutput> losses_;  ///< the first is the loss that is reported
    int last_shard_;
    std::optional<LateOutput> scores_;  ///< the output to judge
    Shape scores_shape_;
};

}  // namespace dlprim
