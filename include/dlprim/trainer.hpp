// SPDX-License-Identifier: MIT
// train(): trains a network from a configuration file, what dlprim_train does. See docs/json.md.
#pragma once

#include <dlprim/context.hpp>
#include <dlprim/namespace.hpp>
#include <dlprim/precision.hpp>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dlprim {

struct TrainProgress {
    int epoch = 0, epochs = 0;  ///< the epoch that runs, from 1
    std::int64_t batch = 0, batches = 0;
    double loss = 0, accuracy = 0;  ///< of the epoch's training batches so far
    double learning_rate = 0;
    double images_per_second = 0;
    bool epoch_done = false;
    double test_loss = 0,
           test_accuracy = -1;  ///< when epoch_done; accuracy below 0: there is no test set
};

struct TrainCall {
    std::string config;  ///< file
    /// The configuration itself, in place of a file; paths in it are relative to the working
    /// folder.
    std::string config_text;
    std::string out =
        "training";  ///< folder, made if need be: checkpoints, model.h5, metrics.csv, report.html
    std::string resume;  ///< checkpoint to go on from, or empty
    int epochs = 0;      ///< instead of the configuration's, when positive
    /// As NetOptions::precision; without it that of the checkpoint to go on from, then the
    /// configuration's, then fp32. Another than the checkpoint's is an error that names both.
    std::optional<Precision> precision;
    /// As NetOptions::precisions, over the checkpoint's.
    std::vector<std::pair<std::string, Precision>> precisions;
    std::function<void(std::string_view)> note;  ///< remarks, as Net::notes(), before it trains
    /// After each batch, and after each epoch with epoch_done. What it throws ends the training and
    /// arrives at the caller; checkpoints of the epochs before are there.
    std::function<void(const TrainProgress&)> progress;
    std::function<void(std::string_view, int, int)> planning;  ///< as NetOptions::progress
};

struct TrainResult {
    int epochs = 0;
    double train_loss = 0, train_accuracy = 0, test_loss = 0, test_accuracy = -1;
    std::string model;  ///< weights file
};

/// Throws Error: not one of config and config_text; what is wrong in configuration, data or
/// network; Error(numeric) naming the first operator whose output is not finite where the loss is
/// not (unless "on_nan": "continue", which skips the batch).
TrainResult train(const Context& context, const TrainCall& call);

}  // namespace dlprim
