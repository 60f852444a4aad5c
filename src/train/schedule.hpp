// SPDX-License-Identifier: MIT
// Schedules: the learning rate as a function of training progress.
#pragma once

#include <string>

namespace dlprim {

struct ScheduleOptions {
    enum class Kind { constant, step, cosine, plateau };
    Kind kind = Kind::constant;
    double warmup_epochs = 0;  ///< linear from 0 to the full rate
    double step_epochs = 30;   ///< step: multiply by `gamma` every so many epochs
    double gamma = 0.1;        ///< step and plateau
    double minimum = 0;  ///< cosine: the rate at the end (Loshchilov and Hutter, "SGDR", 2017)
    int patience = 5;    ///< plateau: epochs without improvement before the rate falls
};

class Schedule {
  public:
    Schedule(const ScheduleOptions& options, double base_rate, double epochs)
        : options_(options), base_(base_rate), epochs_(epochs) {}

    /// The rate at `epoch` (a fraction counts batches within it).
    double rate(double epoch) const;
    /// plateau: tells the validation loss after an epoch.
    void report(double loss);

    // State, for checkpoints.
    double factor = 1;
    double best = 1e300;
    double epochs_without_improvement = 0;

  private:
    ScheduleOptions options_;
    double base_, epochs_;
};

}  // namespace dlprim
