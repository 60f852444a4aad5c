// SPDX-License-Identifier: MIT
// train(): trains a network from a configuration file, what dlprim_train does. docs/json.md has the
// configuration.
//
// The call returns when the training is over. Meanwhile it uses the context as a Net and a Solver
// do, and so excludes other nets on it (dlprim/context.hpp). The functions of a TrainCall are
// called by the calling thread.
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
    double loss = 0;      ///< mean of the epoch's training batches so far
    double accuracy = 0;  ///< of these batches, from 0 to 1
    double learning_rate = 0;
    double images_per_second = 0;
    bool epoch_done = false;    ///< the epoch is over, and what follows is set
    double test_loss = 0;       ///< of the test set
    double test_accuracy = -1;  ///< of the test set, from 0 to 1; -1: there is none
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
    int epochs = 0;  ///< that the network has been trained, with those before a checkpoint
    double train_loss = 0, train_accuracy = 0;  ///< of the last epoch
    double test_loss = 0, test_accuracy = -1;   ///< behind it; accuracy -1: there is no test set
    std::string model;                          ///< weights file
};

/// Throws Error: not one of config and config_text; what is wrong in configuration, data or
/// network; Error(numeric) naming the first operator whose output is not finite where the loss is
/// not (unless "on_nan": "continue", which skips the batch).
TrainResult train(const Context& context, const TrainCall& call);

}  // namespace dlprim
