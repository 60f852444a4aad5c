// SPDX-License-Identifier: MIT
// Checkpoints: when a run saves, under which names, and which of its files it keeps.
#pragma once

#include "api/training/run_folder.hpp"
#include "api/training/run_state.hpp"
#include "train/config.hpp"

#include <dlprim/trainer.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dlprim {

/// The checkpoint that a run goes on from.
struct ResumeFrom {
    std::string path;        ///< empty: the run begins anew
    bool in_folder = false;  ///< whether it is one of the run's folder
    std::vector<std::string> notes;
};

/// Finds it. Throws Error(invalid_argument) if files in the folder would be lost.
ResumeFrom resolve_resume(const TrainCall& call, const RunFolder& folder);

class Checkpoints {
  public:
    using Note = std::function<void(std::string_view)>;
    Checkpoints(const TrainConfig::Checkpoints& how, const RunFolder& folder, Note note)
        : how_(how), folder_(folder), note_(std::move(note)) {}

    /// Removes what the run replaces, once it is ready to start from there.
    void clear_way(const ResumeFrom& from, const RunState& state) const;
    /// The run's present position is that of this file.
    void resumed_from(const ResumeFrom& from, const RunState& state);
    /// Whether to save between two steps, when so many batches of the epoch are done.
    bool is_due(const RunState& state, std::int64_t batches_done) const;
    /// Whether to save after an epoch, which is not the last.
    bool is_due_after_epoch(const RunState& state) const;

    /// Saves, and then removes the earliest checkpoints beyond the number to keep. If that fails,
    /// says so to `note`, and returns false. Where the folder belongs to another process, these
    /// functions only take note that it saves.
    bool save(const RunState& state, Solver& solver);
    /// The same for best.h5.
    void save_best(const RunState& state, Solver& solver);

    const std::string& last() const { return last_; }  ///< path; empty if there is none
    bool is_saved(const RunState& state) const;        ///< at its present position

  private:
    bool attempt(const std::string& path, const RunState& state, Solver& solver);

    const TrainConfig::Checkpoints how_;
    const RunFolder& folder_;
    Note note_;
    std::string last_;
    using Position = std::pair<int, std::int64_t>;  ///< epochs and batches that are done
    static Position position_of(const RunState& state) {
        return {state.epochs_done, state.batches_done};
    }
    Position saved_{-1, 0}, tried_at_{0, 0};  ///< of the last one, and of the last attempt
    std::chrono::steady_clock::time_point tried_ = std::chrono::steady_clock::now();
};

}  // namespace dlprim
