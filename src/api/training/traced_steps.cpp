// SPDX-License-Identifier: MIT
// TracedSteps.
#include "api/training/traced_steps.hpp"

#include "api/placement/placed_net_impl.hpp"
#include "api/solver_impl.hpp"
#include "base/env.hpp"
#include "base/text.hpp"

#include <dlprim/version.hpp>

#include <filesystem>
#include <utility>

namespace dlprim {

namespace {

/// The file of a process: that of rank 1 of several is trace.rank1.json.
std::string path_of(const std::string& path, int rank, int processes) {
    if (processes == 1) return path;
    const std::filesystem::path whole(path);
    const std::string name = cat(whole.stem().string(), ".rank", rank, whole.extension().string());
    return (whole.parent_path() / name).string();
}

}  // namespace

TracedSteps::TracedSteps(const TrainCall& call, int rank, int processes)
    : path_(path_of(call.trace, rank, processes)),
      processes_(processes),
      steps_(call.trace_steps),
      note_(call.note) {
    require(steps_ >= 1, "a trace of ", steps_, " steps shows nothing: trace at least one");
    write({});
}

void TracedSteps::attach(Team& team, const std::vector<Context>& devices, std::size_t first_rank) {
    recorder_ = std::make_shared<StepTrace>(first_rank);
    if (NetCore& net = core_of(team.net(0)); net.alone() == nullptr) {
        auto& placed = static_cast<PlacedNetImpl&>(net);
        placed.set_trace(recorder_);
        for (const std::string& name : placed.trace().names())
            ranks_.push_back({ranks_.size(), name});
        return;
    }
    for (int i = 0; i < team.size(); ++i) {
        Access::impl(team.solver(i)).set_trace(recorder_, static_cast<std::size_t>(i));
        const std::size_t number = first_rank + static_cast<std::size_t>(i);
        ranks_.push_back({number, cat("rank ", number, ": ",
                                      devices.at(static_cast<std::size_t>(i)).info().str())});
    }
}

void TracedSteps::begin_step(std::int64_t step) {
    if (written_) return;
    const std::int64_t traced = begun_++ - warm_up;
    if (traced < 0) return;
    if (traced < steps_) return recorder_->begin(step);
    try {
        finish(true);
    } catch (const Error& error) {
        if (error.kind() != ErrorKind::io) throw;
        if (note_) note_(cat(error.what(), "; the training goes on"));
    }
}

void TracedSteps::finish(bool wait) {
    if (std::exchange(written_, true)) return;
    recorder_->end();
    write(recorder_->take(wait));
    if (begun_ <= warm_up && note_)
        note_(cat("'", path_, "' holds no step: the run ended in the ", warm_up,
                  " steps of warm-up before those that are traced"));
}

void TracedSteps::write(std::vector<TraceSpan> spans) const {
    write_file_atomically(
        path_, trace_text(ranks_, std::move(spans),
                          {{"program", cat("dlprim ", DLPRIM_VERSION)},
                           {"what", cat("training steps of ", processes_ > 1 ? "a process of " : "",
                                        processes_ > 1 ? cat(processes_, " processes") : "a run",
                                        ", measured")}}));
}

}  // namespace dlprim
