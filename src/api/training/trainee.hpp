// SPDX-License-Identifier: MIT
// Trainee: what a run trains: a team of devices, of which each has the whole network, or a single
// network, on one device or with its operators placed on several. It makes the steps of batches,
// and tells what came out of them.
#pragma once

#include "api/training/feeder.hpp"
#include "api/training/roles.hpp"
#include "api/training/stepper.hpp"
#include "api/training/traced_steps.hpp"
#include "api/training/train_ranks.hpp"
#include "train/config.hpp"

#include <dlprim/team.hpp>
#include <dlprim/trainer.hpp>

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace dlprim {

class ProcessGroup;

class Trainee {
  public:
    /// `open` opens the network for a device, by its rank. `is_placed` says that it places the
    /// network's operators, and that `contexts` is one of their devices. Everything is referred to.
    Trainee(const std::vector<Context>& contexts, const TrainCall& call, const TrainConfig& config,
            ProcessGroup* group, bool is_placed,
            const std::function<Net(const Context&, int rank)>& open);

    /// Those of the first device.
    Net& net() { return team_->net(0); }
    Solver& solver() { return team_->solver(0); }
    int shards() const { return config_.solver.shards; }  ///< of a batch, of all processes

    /// To be called before the first step, once parameters have values.
    void attach(const Roles& roles, TracedSteps* trace);
    /// Gives all devices the parameters and solver state of the first one.
    void share_state() { team_->share_state(); }
    /// How devices work together: sentences.
    std::vector<std::string> notes();

    void set_learning_rate(double rate) { team_->set_learning_rate(rate); }
    /// Enqueues the step of the batch that the feeder has taken, or of the former inputs where none
    /// of its examples can be read.
    void step(Feeder& feeder, bool has_examples, StepTrace* trace);
    /// Waits for the oldest step whose results were not taken yet: of all devices of all processes.
    Stepper::Outcome take();
    Shape scores_shape() const;
    /// Undoes the last steps, of which the first had a loss that is not finite.
    void call_off(int steps) { team_->call_off(steps); }
    /// The first operator whose output is not finite for the batch that was called off, which the
    /// feeder has taken again. Empty if it is not known.
    std::string first_nan(Feeder& feeder);

  private:
    const TrainConfig& config_;
    ProcessGroup* const group_;  ///< null for one process
    TrainRanks ranks_;
    std::optional<Team> team_;
    std::vector<Stepper> steppers_;  ///< by rank
};

/// Throws Error for what a run does not do whose operators have devices of their own.
void check_placed(const TrainCall& call, const TrainConfig& config);

}  // namespace dlprim
