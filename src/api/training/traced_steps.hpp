// SPDX-License-Identifier: MIT
// TracedSteps: the steps of a training run that TrainCall::trace asks for, and their file.
#pragma once

#include "collective/exchange/step_trace.hpp"
#include "formats/trace_file.hpp"

#include <dlprim/team.hpp>
#include <dlprim/trainer.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace dlprim {

class TracedSteps {
  public:
    /// How many steps of a run come before those that are traced. Engines are proven, memory is
    /// touched and the loader's batches are used up in them.
    static constexpr std::int64_t warm_up = 2;

    /// Writes a file without steps, so that one that cannot be written is known now. `rank` is the
    /// number of the process among `processes`. Throws Error(invalid_argument), Error(io).
    TracedSteps(const TrainCall& call, int rank, int processes);
    /// Lets the team's solvers record, or the parts of its placed network. `first_rank` is the
    /// number of its first rank among those of all processes, of which each may have several.
    void attach(Team& team, const std::vector<Context>& devices, std::size_t first_rank);

    StepTrace* recorder() const { return recorder_.get(); }
    /// To be called before each step. Writes the file after the last traced one, which waits for
    /// the devices.
    void begin_step(std::int64_t step);
    /// To be called when something else than steps follows.
    void interrupt() {
        if (recorder_->is_on()) recorder_->interrupt();
    }
    /// Writes what has been recorded, if that is not done yet: at the end of a run. `wait` as for
    /// StepTrace::take(). Throws Error(io).
    void finish(bool wait);

  private:
    void write(std::vector<TraceSpan> spans) const;

    std::string path_;
    int processes_;
    std::int64_t steps_, begun_ = 0;
    bool written_ = false;
    std::shared_ptr<StepTrace> recorder_ = std::make_shared<StepTrace>(0);
    std::vector<TraceRank> ranks_;
    std::function<void(std::string_view)> note_;
};

}  // namespace dlprim
