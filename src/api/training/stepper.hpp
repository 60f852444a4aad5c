// SPDX-License-Identifier: MIT
// Stepper: training steps whose results are read while later steps run, so that no step waits for
// the host.
#pragma once

#include "api/training/late_output.hpp"
#include "api/training/roles.hpp"

#include <dlprim/net.hpp>
#include <dlprim/solver.hpp>

#include <optional>
#include <vector>

namespace dlprim {

class Stepper {
  public:
    Stepper(Net& net, Solver& solver, const Roles& roles);

    /// Enqueues a step on the net's inputs, which are a shard of a batch, and after the last shard
    /// reads of the batch's results.
    void start(double learning_rate, int shard);

    struct Outcome {
        double loss = 0;  ///< the first loss that is not finite, or else the first loss
        bool finite = true;
        std::vector<float> scores;  ///< empty if the net has no output besides losses
    };
    /// Waits for the oldest step whose results were not taken yet.
    Outcome take();
    const Shape& scores_shape() const { return scores_shape_; }

  private:
    Solver& solver_;
    std::vector<LateOutput> losses_;  ///< the first is the loss that is reported
    int shards_;
    /// The output to judge, and what gathers it over the shards; the same where there is one.
    Tensor shard_scores_, batch_scores_;
    std::optional<LateOutput> scores_;
    Shape scores_shape_;
};

}  // namespace dlprim
