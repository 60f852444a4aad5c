// SPDX-License-Identifier: MIT
// Stepper: reads the results of a net's training steps while later steps run, so that no step waits
// for the host.
#pragma once

#include "api/late_output.hpp"
#include "api/shard_output.hpp"
#include "api/training/roles.hpp"
#include "api/training/trained_net.hpp"

#include <optional>
#include <vector>

namespace dlprim {

class Stepper {
  public:
    /// For a net that computes so many shards of each batch, from this one on.
    Stepper(const TrainedNet& net, const Roles& roles, int first_shard, int shards);
    /// For a placed net, whose solver puts the outputs of all shards together.
    Stepper(PlacedNet& net, PlacedSolver& solver, const Roles& roles);

    /// Must be called after the step of each shard. Enqueues what keeps its results, and after the
    /// last one reads of all. Of a placed net whole batches count as one shard.
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
    void read_losses(const TrainedNet& net, const Roles& roles);
    void read_scores(const Tensor& whole);

    std::vector<LateOutput> losses_;  ///< the first is the loss that is reported
    int first_ = 0, shards_ = 1;
    Tensor shard_scores_;                  ///< the output to judge
    std::optional<ShardOutput> gathered_;  ///< over several shards
    std::optional<LateOutput> scores_;
    Shape scores_shape_;
};

}  // namespace dlprim
