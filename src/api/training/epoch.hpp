// SPDX-License-Identifier: MIT
// Epoch: the training batches of one epoch, from wherever the run is in it.
#pragma once

#include "api/training/feeder.hpp"
#include "api/training/run_state.hpp"
#include "api/training/traced_steps.hpp"
#include "api/training/trainee.hpp"
#include "train/config.hpp"

#include <dlprim/trainer.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace dlprim {

/// The accuracy among the values of these metrics, or -1.
double accuracy_in(const std::vector<std::string>& names, const std::vector<double>& values);

class Epoch {
  public:
    /// What works on it.
    struct Parts {
        Trainee& trainee;
        Feeder& feeder;
        TracedSteps* trace = nullptr;  ///< null if steps are not traced
    };
    Epoch(const Parts& parts, const TrainConfig& config, RunState& state);

    /// Runs batch after batch. Results of a batch are examined after the next step has been
    /// enqueued, so no step waits for the host. If a loss is not finite, that next step, which
    /// changes nothing, is undone.
    ///
    /// Returns true as soon as `pauses` does, which is called before each step, with the number of
    /// the epoch's batches before it. All of these are then finished, and the state is that of a
    /// run after them. Another call goes on.
    bool run(const std::function<void(const TrainProgress&)>& tell,
             const std::function<bool(std::int64_t batches_done)>& pauses);

    /// Of all batches. Throws Error(invalid_argument) if none of them had a finite loss.
    EpochMetrics metrics() const;
    /// What to tell when the epoch is over.
    TrainProgress done(const EpochMetrics& metrics) const;

  private:
    /// A batch whose step has been enqueued.
    struct Batch {
        std::int64_t number = 0;
        double learning_rate = 0;
        Targets targets;
    };
    Batch start(std::int64_t number);
    /// The result of the oldest batch that was not taken yet.
    Stepper::Outcome take();
    /// Takes the result of `batch`. Returns whether its loss is finite; otherwise `next` is undone.
    bool settle(const Batch& batch, std::optional<Batch>& next);
    [[noreturn]] void stop_on_nan(std::int64_t batch, double loss);
    TrainProgress progress();
    double seconds() const;

    Parts parts_;
    const TrainConfig& config_;
    RunState& state_;
    const std::int64_t first_;      ///< batch that it began with
    double images_per_second_ = 0;  ///< when progress was told the last time
    const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

}  // namespace dlprim
