// SPDX-License-Identifier: MIT
// TrainConfig: a training configuration file (JSON), as docs/json.md describes it.
#pragma once

#include "train/data_config.hpp"

#include <dlprim/precision.hpp>
#include <dlprim/schedule.hpp>
#include <dlprim/solver_options.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dlprim {

struct TrainConfig {
    std::string name;     ///< of the configuration in messages
    std::string net;      ///< path, made relative to the configuration's folder
    std::string weights;  ///< initial weights, or empty
    DataConfig data;
    std::int64_t batch = 64;
    /// What the training net computes at once: a batch, or one of its solver.shards shards.
    std::int64_t shard_batch() const { return batch / solver.shards; }
    int epochs = 10;
    std::uint64_t seed = 1;
    std::optional<Precision> precision;  ///< as NetOptions::precision
    double memory_limit = 0;             ///< MiB of a training step's plan; 0: the device's
    std::string initialization = "default";
    SolverOptions solver;
    bool sharded_states = false;  ///< as TeamOptions::sharded_states
    bool any_order = false;       ///< as TeamOptions::any_order
    ScheduleOptions schedule;
    /// When a run saves what it can be resumed from, besides its end. 0 means never.
    struct Checkpoints {
        int every_epochs = 1, every_steps = 0;
        double every_minutes = 0;
        int keep = 1;            ///< how many of the last ones
        bool keep_best = false;  ///< best.h5, too
    } checkpoints;
    /// Fine-tuning. Patterns are those of a shell (fnmatch).
    struct Initial {
        std::string weights;  ///< file, or empty
        /// Names of the network's parameters: which to take (nothing: all), and which not.
        std::vector<std::string> include, exclude;
        /// Beginnings of names in the file, and what they are in the network; the first counts.
        std::vector<std::pair<std::string, std::string>> rename;
        std::vector<std::string> freeze;  ///< names of operators that are not trained
    } initial;
    struct Report {
        bool profile = true;  ///< whether a step is timed by operator
        int mistakes = 24;    ///< how many are shown
    } report;
    bool events = true;  ///< whether to write files for TensorBoard
    /// Ends a run whose value has not improved by more than `minimum_change` for `patience` epochs.
    struct EarlyStopping {
        int patience = 0;  ///< 0: it never ends early
        double minimum_change = 0;
    } early_stopping;
    /// Names for make_metric(); nothing means those that suit the network.
    std::optional<std::vector<std::string>> metrics;
    /// The value by which the best epoch is known: a metric, or "loss"; empty: the first metric, or
    /// the loss if there is none.
    std::string judge_by;
    bool continue_on_nan = false;
};

/// Reads a configuration. `epochs` replaces the configuration's number when it is positive. Throws
/// Error(format), which names the file, line and path of what is wrong.
TrainConfig read_train_config(const std::string& path, int epochs = 0);
/// The same for a text. Messages call it `name`, and paths are relative to the working folder.
TrainConfig parse_train_config(std::string_view text, const std::string& name, int epochs = 0);

}  // namespace dlprim
