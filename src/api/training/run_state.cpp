// SPDX-License-Identifier: MIT
// RunState in checkpoints.
#include "api/training/run_state.hpp"

#include "base/text.hpp"

#include <cmath>
#include <filesystem>
#include <limits>
#include <map>

namespace dlprim {

void save_run(const std::string& path, const RunState& state, Solver& solver) {
    solver.save_checkpoint(path, {{"epochs_done", state.epochs_done},
                                  {"schedule_factor", state.schedule.factor},
                                  {"schedule_best", state.schedule.best},
                                  {"schedule_waited", state.schedule.epochs_without_improvement}});
}

void load_run(const std::string& path, const std::string& folder, RunState& state, Solver& solver) {
    const std::map<std::string, double> extra = solver.load_checkpoint(path);
    const auto value = [&](const char* name, double otherwise) {
        const auto found = extra.find(name);
        return found == extra.end() ? otherwise : found->second;
    };
    const double epochs = value("epochs_done", 0);
    if (!(epochs >= 0 && epochs <= std::numeric_limits<int>::max()) || epochs != std::floor(epochs))
        fail(ErrorKind::format, "'", path, "' is damaged: it says that ", epochs,
             " epochs are done");
    state.epochs_done = static_cast<int>(epochs);
    state.schedule.factor = value("schedule_factor", 1);
    state.schedule.best = value("schedule_best", 1e300);
    state.schedule.epochs_without_improvement = value("schedule_waited", 0);
    // The metrics of the first epochs are next to the checkpoint, unless it was moved.
    std::vector<EpochMetrics> told =
        read_metrics(std::filesystem::path(path).parent_path().string());
    if (told.empty()) told = read_metrics(folder);
    for (const EpochMetrics& metrics : told)
        if (metrics.epoch <= state.epochs_done) state.history.push_back(metrics);
}

}  // namespace dlprim
