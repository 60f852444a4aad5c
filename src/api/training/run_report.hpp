// SPDX-License-Identifier: MIT
// RunReport: report.html of a training run, which is written while the run goes on and at its end.
#pragma once

#include "api/training/evaluator.hpp"
#include "api/training/run_folder.hpp"
#include "api/training/run_state.hpp"
#include "train/config.hpp"

#include <dlprim/net.hpp>
#include <dlprim/trainer.hpp>

#include <nlohmann/json.hpp>

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dlprim {

/// All of its functions tell `note` what goes wrong, and throw no Error: no report ends a training.
/// Exceptions of the caller's own callbacks pass.
class RunReport {
  public:
    using Note = std::function<void(std::string_view)>;
    /// What it is about, all of which outlives it.
    struct Parts {
        const std::vector<Context>& contexts;  ///< the first one's times are shown
        const TrainConfig& config;
        const TrainCall& call;
        const RunFolder& folder;
        const RunState& state;
        const Feeder& feeder;
        const Evaluator* evaluator;  ///< null without a test set
    };
    RunReport(const Parts& parts, Net& net);

    /// Takes from an earlier report in the folder what this run has not found yet.
    void go_on();
    /// Measures a step by node, and how its memory is used, in the first of its calls. The net must
    /// have run a step, of which it keeps the results.
    void examine(Net& net);
    /// Writes the report, unless that was done a moment before or end() follows. The evaluator's
    /// findings are those of the epoch that has just ended.
    void epoch_done(bool end_follows);
    /// Writes it now and then, with how far the epoch is.
    void progress(const TrainProgress& progress);
    /// Writes it for the last time. `status` is "finished" or "stopped".
    void end(const std::string& status);
    /// The run ends by an error. Where there is no report yet, none is written.
    void fail(const std::string& message);

  private:
    using Clock = std::chrono::steady_clock;
    void describe(Net& net);
    void judge();
    void write();

    const Parts parts_;
    nlohmann::ordered_json data_;
    int judged_epoch_ = 0;  ///< the epoch whose findings the evaluator has; 0: none
    bool examined_ = false;
    double cost_ = 0;  ///< seconds that the last writing took
    const Clock::time_point begin_ = Clock::now();
    std::optional<Clock::time_point> written_;
};

}  // namespace dlprim
