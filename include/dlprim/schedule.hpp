// SPDX-License-Identifier: MIT
// Schedule: the learning rate as a function of training progress. It only computes numbers: a
// program passes rate() to Solver::set_learning_rate().
//
// A Schedule is a plain value, and holds nothing of a device. It is for one thread at a time.
#pragma once

#include <dlprim/namespace.hpp>

namespace dlprim {

struct ScheduleOptions {
    /// cosine: Loshchilov and Hutter, "SGDR", 2017, without restarts. plateau: the rate falls when
    /// the loss that report() tells has stopped falling.
    enum class Kind { constant, step, cosine, plateau };
    Kind kind = Kind::constant;
    double warmup_epochs = 0;  ///< linear from 0 to the full rate
    double step_epochs = 30;   ///< step: multiply by `gamma` every so many epochs
    double gamma = 0.1;        ///< step and plateau
    double minimum = 0;        ///< cosine: the rate at the end
    int patience = 5;          ///< plateau: epochs without improvement before the rate falls
};

class Schedule {
  public:
    /// `base_rate`: the full rate. `epochs`: how many the run has, at the end of which the cosine
    /// reaches its minimum. Throws Error(invalid_argument) on numbers that make no sense.
    Schedule(const ScheduleOptions& options, double base_rate, double epochs);

    /// The rate at `epoch` (a fraction counts batches within it).
    double rate(double epoch) const;
    /// plateau: tells it the validation loss after an epoch; others take no notice.
    void report(double loss);

    // The state of plateau, for checkpoints: a program that goes on from one sets it.
    double factor = 1;                      ///< of the rate
    double best = 1e300;                    ///< the least loss that was reported
    double epochs_without_improvement = 0;  ///< since then

  private:
    ScheduleOptions options_;
    double base_, epochs_;
};

}  // namespace dlprim
