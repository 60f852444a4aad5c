// SPDX-License-Identifier: MIT
// Trainee: what a run trains, on one device, by a team of several, or with the network's operators
// placed on several. It makes the steps of batches, and tells what came out of them.
#pragma once

#include "api/training/feeder.hpp"
#include "api/training/roles.hpp"
#include "api/training/stepper.hpp"
#include "api/training/traced_steps.hpp"
#include "api/training/trained_net.hpp"
#include "train/config.hpp"

#include <dlprim/trainer.hpp>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace dlprim {

class ProcessGroup;

class Trainee {
  public:
    Trainee() = default;
    virtual ~Trainee() = default;
    Trainee(const Trainee&) = delete;
    Trainee& operator=(const Trainee&) = delete;

    virtual TrainedNet net() = 0;
    virtual TrainedSolver solver() = 0;
    /// The network as one on the first device, which says what it consists of. If it is the one
    /// that is trained, its steps can be measured by operator.
    virtual Net& whole() = 0;
    virtual bool is_whole() const = 0;
    virtual int shards() const = 0;  ///< of a batch, of all processes

    /// To be called before the first step, once parameters have values.
    virtual void attach(const Roles& roles, TracedSteps* trace) = 0;
    /// Gives all devices the parameters and solver state of the first one.
    virtual void share_state() = 0;
    /// How devices work together: sentences.
    virtual std::vector<std::string> notes() = 0;

    virtual void set_learning_rate(double rate) = 0;
    /// Enqueues the step of the batch that the feeder has taken, or of the former inputs where none
    /// of its examples can be read.
    virtual void step(Feeder& feeder, bool has_examples, StepTrace* trace) = 0;
    /// Waits for the oldest step whose results were not taken yet: of all devices of all processes.
    virtual Stepper::Outcome take() = 0;
    virtual Shape scores_shape() const = 0;
    /// Undoes the last steps, of which the first had a loss that is not finite.
    virtual void call_off(int steps) = 0;
    /// The first operator whose output is not finite for the batch that was called off, which the
    /// feeder has taken again. Empty if it is not known.
    virtual std::string first_nan(Feeder& feeder) = 0;
};

/// `open` opens the network for a device, by its rank. Everything is referred to.
std::unique_ptr<Trainee> train_by_team(const std::vector<Context>& contexts, const TrainCall& call,
                                       const TrainConfig& config, ProcessGroup* group,
                                       const std::function<Net(const Context&, int rank)>& open);

/// The network with its operators on these devices. Throws Error(invalid_argument) for what only
/// runs on one device or by a team can do.
std::unique_ptr<Trainee> train_placed(const std::vector<NamedDevice>& devices,
                                      const TrainCall& call, const TrainConfig& config,
                                      const NetOptions& options);

}  // namespace dlprim
