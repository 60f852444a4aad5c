// SPDX-License-Identifier: MIT
// RunState: how far a training run is, which its checkpoints hold besides weights and solver.
#pragma once

#include "train/report.hpp"

#include <dlprim/schedule.hpp>
#include <dlprim/solver.hpp>

#include <string>
#include <vector>

namespace dlprim {

struct RunState {
    int epochs_done = 0;
    Schedule schedule;
    std::vector<EpochMetrics> history;  ///< of the epochs that are done
};

void save_run(const std::string& path, const RunState& state, Solver& solver);
/// Reads a checkpoint, and its history from metrics.csv next to it or in `folder`. Throws Error,
/// which names the file.
void load_run(const std::string& path, const std::string& folder, RunState& state, Solver& solver);

}  // namespace dlprim
