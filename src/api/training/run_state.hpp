// SPDX-License-Identifier: MIT
// RunState: how far a training run is. Checkpoints hold it besides weights and solver, so that a
// run goes on from there as if it had never stopped.
#pragma once

#include "api/training/judges.hpp"
#include "train/history.hpp"
#include "train/settings.hpp"

#include <dlprim/schedule.hpp>
#include <dlprim/solver.hpp>

#include <cstdint>
#include <optional>
#include <string>

namespace dlprim {

/// What the training batches of an epoch have added up to.
struct EpochSums {
    double loss = 0;
    std::int64_t counted = 0;  ///< batches whose loss was finite
    double learning_rate = 0;  ///< of the last of them
    double seconds = 0;        ///< spent on the epoch
    Judges judges;

    void restart() {
        loss = learning_rate = seconds = 0;
        counted = 0;
        judges.reset();
    }
};

struct RunState {
    RunState(const Schedule& rates, const Settings& from) : schedule(rates), settings(from) {}

    int epochs_done = 0;
    std::int64_t batches_done = 0;  ///< of the epoch after these
    std::int64_t batches = 0;       ///< of an epoch
    EpochSums sums;                 ///< of that epoch
    Schedule schedule;
    std::optional<double> best;  ///< the value of the best epoch
    int best_epoch = 0;          ///< its number, from 1
    /// The value that later epochs must improve on, or the run ends early.
    std::optional<double> reference;
    int epochs_without_improvement = 0;
    RunHistory history;  ///< of the epochs that are done
    Settings settings;
};

/// Writes a checkpoint, whole or not at all. Throws Error(io).
void save_run(const std::string& path, const RunState& state, Solver& solver);
/// Reads one. A history that it lacks comes from metrics.csv next to it or in `folder`. Returns a
/// sentence on settings that have changed, or an empty text. Throws Error, which names the file.
std::string load_run(const std::string& path, const std::string& folder, RunState& state,
                     Solver& solver);

}  // namespace dlprim
