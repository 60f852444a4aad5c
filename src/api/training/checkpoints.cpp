// SPDX-License-Identifier: MIT
// Checkpoints.
#include "api/training/checkpoints.hpp"

#include "api/solver_impl.hpp"
#include "api/training/listed.hpp"
#include "base/text.hpp"
#include "formats/hdf5_file.hpp"

#include <filesystem>
#include <system_error>

namespace dlprim {

namespace {

namespace fs = std::filesystem;

/// Empty, or what is wrong with the file.
std::string damage_of(const std::string& path) {
    try {
        const Hdf5Reader file(path);
        file.check_total();
        if (!file.attribute("", "solver_updates")) return "it is not a checkpoint";
    } catch (const Error& error) {
        return error.what();
    }
    return {};
}

[[noreturn]] void refuse_results(const RunFolder& folder, const std::vector<std::string>& names) {
    const bool any = !folder.checkpoints().empty();
    fail(ErrorKind::invalid_argument, "folder '", folder.path(),
         "' holds results of an earlier run (", listed(names, 3),
         "): ", any ? "go on from its last checkpoint (resume latest), " : "",
         "give this run another folder (out), or have them removed (replace)");
}

ResumeFrom latest_in(const RunFolder& folder, bool replace) {
    ResumeFrom from;
    std::vector<RunFolder::Checkpoint> all = folder.checkpoints();
    for (; !all.empty(); all.pop_back()) {
        const std::string path = folder.file(all.back().name);
        const std::string damage = damage_of(path);
        if (damage.empty()) {
            from.path = path;
            from.in_folder = true;
            return from;
        }
        from.notes.push_back(cat("'", path, "' is not used: ", damage));
    }
    require(from.notes.empty(), "no checkpoint in '", folder.path(), "' is whole; ",
            from.notes.empty() ? "" : from.notes.front());
    // A run that was killed before its first checkpoint may have left metrics, and nothing of
    // value.
    for (const std::string& name : folder.results())
        if (!replace && (name == "model.h5" || name == "best.h5"))
            refuse_results(folder, folder.results());
    from.notes.push_back(
        cat("there is no checkpoint in '", folder.path(), "' yet: the training begins anew"));
    return from;
}

}  // namespace

ResumeFrom resolve_resume(const TrainCall& call, const RunFolder& folder) {
    if (call.resume == "latest") return latest_in(folder, call.replace);
    ResumeFrom from;
    from.path = call.resume;
    const std::vector<std::string> results = folder.results();
    if (results.empty() || call.replace) {
        std::error_code error;
        from.in_folder =
            !from.path.empty() && fs::equivalent(fs::path(from.path).parent_path().empty()
                                                     ? fs::path(".")
                                                     : fs::path(from.path).parent_path(),
                                                 folder.path(), error);
        return from;
    }
    std::error_code error;
    for (const RunFolder::Checkpoint& checkpoint : folder.checkpoints()) {
        if (from.in_folder)  // it comes after the one to go on from
            fail(ErrorKind::invalid_argument, "'", folder.file(checkpoint.name), "' is ahead of '",
                 from.path,
                 "': go on from the last checkpoint (resume latest), give this run another folder "
                 "(out), or have it removed (replace)");
        from.in_folder = !from.path.empty() &&
                         fs::equivalent(from.path, folder.file(checkpoint.name), error) && !error;
    }
    if (!from.in_folder && !fs::exists(from.path, error) && !from.path.empty())
        return from;  // who opens it says that there is no such file
    if (!from.in_folder) refuse_results(folder, results);
    return from;
}

void Checkpoints::resumed_from(const ResumeFrom& from, const RunState& state) {
    last_ = from.path;
    tried_at_ = position_of(state);
    if (from.in_folder) saved_ = tried_at_;
}

void Checkpoints::clear_way(const ResumeFrom& from, const RunState& state) const {
    if (!folder_.is_owner()) return;
    if (!from.in_folder) {
        folder_.remove_results();
        return;
    }
    for (const RunFolder::Checkpoint& checkpoint : folder_.checkpoints()) {
        if (Position{checkpoint.epochs_done, checkpoint.batches_done} <= position_of(state))
            continue;
        std::error_code ignored;
        fs::remove(folder_.file(checkpoint.name), ignored);
    }
}

bool Checkpoints::is_saved(const RunState& state) const {
    return saved_ == position_of(state);
}

bool Checkpoints::is_due(const RunState& state, std::int64_t batches_done) const {
    if (tried_at_ == Position{state.epochs_done, batches_done}) return false;
    const std::int64_t steps = state.epochs_done * state.batches + batches_done;
    if (how_.every_steps > 0 && steps % how_.every_steps == 0) return true;
    const std::chrono::duration<double, std::ratio<60>> minutes =
        std::chrono::steady_clock::now() - tried_;
    return how_.every_minutes > 0 && minutes.count() >= how_.every_minutes;
}

bool Checkpoints::is_due_after_epoch(const RunState& state) const {
    return (how_.every_epochs > 0 && state.epochs_done % how_.every_epochs == 0) ||
           is_due(state, 0);
}

bool Checkpoints::attempt(const std::string& path, const RunState& state, Solver& solver) {
    core_of(solver).gather_states();
    if (!folder_.is_owner()) return true;
    try {
        save_run(path, state, solver);
        return true;
    } catch (const Error& error) {
        if (error.kind() != ErrorKind::io) throw;
        if (note_)
            note_(cat("no checkpoint was saved: ", error.what(),
                      last_.empty() ? "" : cat("; '", last_, "' is the last good one")));
        return false;
    }
}

bool Checkpoints::save(const RunState& state, Solver& solver) {
    const std::string path =
        folder_.file(RunFolder::name_of(state.epochs_done, state.batches_done));
    tried_at_ = position_of(state);
    const bool saved = attempt(path, state, solver);
    tried_ = std::chrono::steady_clock::now();
    if (!saved) return false;
    last_ = path;
    saved_ = tried_at_;
    if (!folder_.is_owner()) return true;
    const std::vector<RunFolder::Checkpoint> all = folder_.checkpoints();
    for (std::size_t i = 0; i + static_cast<std::size_t>(how_.keep) < all.size(); ++i) {
        std::error_code ignored;
        fs::remove(folder_.file(all[i].name), ignored);
    }
    return true;
}

void Checkpoints::save_best(const RunState& state, Solver& solver) {
    attempt(folder_.file("best.h5"), state, solver);
}

}  // namespace dlprim
