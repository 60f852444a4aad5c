// SPDX-License-Identifier: MIT
// Schedule: the learning rate as a function of training progress. It only computes numbers: a
// program passes rate() to Solver::set_learning_rate().
//
// A Schedule is a plain value and uses no device. One thread at a time may use it.
#pragma once

#include <dlprim/namespace.hpp>

namespace dlprim {

struct ScheduleOptions {
    /// constant: always the full rate. step: the rate is multiplied by `gamma` every `step_epochs`.
    /// cosine: Loshchilov and Hutter, "SGDR", 2017, without restarts. plateau: the rate is
    /// multiplied by `gamma` when the loss that report() is given has stopped falling.
    enum class Kind { constant, step, cosine, plateau };
    Kind kind = Kind::constant;
    double warmup_epochs = 0;  ///< over which the rate grows linearly from 0, for every kind
    double step_epochs = 30;   ///< step: epochs between two reductions, counted from epoch 0
    double gamma = 0.1;        ///< step and plateau: factor of each reduction
    double minimum = 0;        ///< cosine: the rate at the end
    int patience = 5;          ///< plateau: epochs without improvement before the rate falls
};

class Schedule {
  public:
    /// `base_rate` is the full rate. `epochs` is the length of the run, at whose end the cosine
    /// reaches its minimum. Throws Error(invalid_argument) for numbers out of range, and for a
    /// cosine whose warm-up is longer than the run.
    Schedule(const ScheduleOptions& options, double base_rate, double epochs);
    double warmup_epochs() const { return options_.warmup_epochs; }

    /// The rate after `epoch` epochs. The fraction says how much of the present epoch is over.
    double rate(double epoch) const;
    /// Takes the loss on the test set after an epoch. It counts for plateau alone.
    void report(double loss);

    // The state of plateau. A program that saves checkpoints saves it, and sets it when it resumes.
    double factor = 1;                      ///< of the full rate
    double best = 1e300;                    ///< the least loss that was reported
    double epochs_without_improvement = 0;  ///< epochs since that loss or since the last reduction

  private:
    ScheduleOptions options_;
    double base_, epochs_;
};

}  // namespace dlprim
