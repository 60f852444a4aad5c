// SPDX-License-Identifier: MIT
// Judging: which metrics a run has, which epoch is the best by them, and whether a run has stopped
// getting better.
#pragma once

#include "api/training/roles.hpp"
#include "api/training/run_state.hpp"
#include "train/config.hpp"
#include "train/dataset.hpp"

#include <dlprim/net.hpp>

#include <string>
#include <vector>

namespace dlprim {

/// The names of the configuration's metrics. Without any: accuracy for class numbers, with mean_iou
/// where each example has several (pixels), and mean_absolute_error for numbers. None without
/// outputs to judge. Throws Error(format) for metrics of the other kind of target.
std::vector<std::string> metrics_for(const Roles& roles, TargetKind targets,
                                     const TrainConfig& config);

class Judging {
  public:
    /// Throws Error(format) if `judge_by` is none of these metrics.
    Judging(const TrainConfig& config, const std::vector<std::string>& metrics);

    /// Takes the results of an epoch. Returns whether it is the best so far.
    bool take(const EpochMetrics& epoch, RunState& state) const;
    /// Whether the run ends early.
    bool is_enough(const RunState& state) const;
    /// Why: a sentence.
    std::string reason(const RunState& state) const;

  private:
    double value(const EpochMetrics& epoch, bool tested) const;
    bool is_better(double value, double than, double by) const;

    const TrainConfig::EarlyStopping stopping_;
    std::string name_;  ///< what is judged by
    int index_ = -1;    ///< among the metrics; -1: the loss
    bool higher_is_better_ = false;
};

}  // namespace dlprim
