// SPDX-License-Identifier: MIT
// Judging.
#include "api/training/judging.hpp"

#include "base/text.hpp"
#include "train/metrics.hpp"

#include <algorithm>

namespace dlprim {

std::vector<std::string> metrics_for(const Roles& roles, TargetKind targets,
                                     const TrainConfig& config) {
    const bool classes = targets != TargetKind::values;
    if (roles.scores.empty()) {
        if (config.metrics && !config.metrics->empty())
            fail(ErrorKind::format, config.name, ": metrics judge an output, and the network '",
                 config.net, "' has none but losses");
        return {};
    }
    if (!config.metrics) {
        if (!classes) return {"mean_absolute_error"};
        if (targets == TargetKind::mask) return {"accuracy", "mean_iou"};
        return {"accuracy"};
    }
    for (const std::string& name : *config.metrics)
        if (judges_classes(name) != classes)
            fail(ErrorKind::format, config.name, ": metric '", name, "' judges ",
                 classes ? "numbers, and the targets of this network are classes"
                         : "classes, and the targets of this network are numbers");
    return *config.metrics;
}

Judging::Judging(const TrainConfig& config, const std::vector<std::string>& metrics)
    : stopping_(config.early_stopping), name_(config.judge_by) {
    if (name_.empty()) name_ = metrics.empty() ? "loss" : metrics.front();
    if (name_ == "loss") return;
    const auto found = std::find(metrics.begin(), metrics.end(), name_);
    if (found == metrics.end()) {
        std::vector<std::string> names = metrics;
        names.emplace_back("loss");
        fail(ErrorKind::format, config.name, ": judge_by is '", name_, "', must be one of ",
             join(names, ", "), did_you_mean(name_, names));
    }
    index_ = static_cast<int>(found - metrics.begin());
    higher_is_better_ = make_metric(name_)->higher_is_better();
}

double Judging::value(const EpochMetrics& epoch, bool tested) const {
    if (index_ < 0) return tested ? epoch.test_loss : epoch.train_loss;
    return (tested ? epoch.test : epoch.train).at(static_cast<std::size_t>(index_));
}

bool Judging::is_better(double value, double than, double by) const {
    return higher_is_better_ ? value > than + by : value < than - by;
}

bool Judging::take(const EpochMetrics& epoch, RunState& state) const {
    const double now = value(epoch, state.history.tested);
    if (!state.reference || is_better(now, *state.reference, stopping_.minimum_change)) {
        state.reference = now;
        state.epochs_without_improvement = 0;
    } else {
        ++state.epochs_without_improvement;
    }
    if (state.best && !is_better(now, *state.best, 0)) return false;
    state.best = now;
    state.best_epoch = epoch.epoch;
    return true;
}

bool Judging::is_enough(const RunState& state) const {
    return stopping_.patience > 0 && state.epochs_without_improvement >= stopping_.patience;
}

std::string Judging::reason(const RunState& state) const {
    return cat("the training ends after epoch ", state.epochs_done, ": the ",
               state.history.tested ? "test " : "training ", name_, " has not improved for ",
               state.epochs_without_improvement, " epochs; it was best in epoch ",
               state.best_epoch);
}

}  // namespace dlprim
