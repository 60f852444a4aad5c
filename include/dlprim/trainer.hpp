// SPDX-License-Identifier: MIT
// train(): trains a network that classifies images, as a configuration says. It is what the command
// dlprim_train does. docs/json.md describes the configuration.
//
// The call returns when the training is over. Meanwhile the thread uses the context as for a Net
// and a Solver, so that no other thread may use nets on it (dlprim/context.hpp). The functions of a
// TrainCall are called by the thread that called train().
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
    int epoch = 0, epochs = 0;            ///< the present epoch, from 1, and their number
    std::int64_t batch = 0, batches = 0;  ///< batches of this epoch that are done, and all of them
    double loss = 0;                      ///< mean of the epoch's training batches so far
    double accuracy = 0;                  ///< of these batches, from 0 to 1
    double learning_rate = 0;             ///< of the last of these batches
    double images_per_second = 0;         ///< since the epoch began
    bool epoch_done = false;              ///< the epoch is over, and the fields below are set
    double test_loss = 0;                 ///< mean over the test set
    double test_accuracy = -1;            ///< over the test set, from 0 to 1; -1: there is no set
};

struct TrainCall {
    /// The configuration file. Paths in it are relative to its folder.
    std::string config;
    /// The configuration as text, in place of a file. Paths in it are relative to the working
    /// folder.
    std::string config_text;
    /// The folder of the results: checkpoints, model.h5, metrics.csv and report.html. It is made if
    /// it does not exist.
    std::string out = "training";
    std::string resume;  ///< the checkpoint file to go on from; empty: a new training
    int epochs = 0;      ///< if positive, in place of the configuration's number of epochs
    /// As NetOptions::precision. Without it the checkpoint's precision is taken, without one the
    /// configuration's, and else fp32. A precision that is not the checkpoint's is an error, which
    /// names both.
    std::optional<Precision> precision;
    /// As NetOptions::precisions. They take precedence over those of the checkpoint.
    std::vector<std::pair<std::string, Precision>> precisions;
    /// Called before the training, with each of the remarks that Net::notes() returns.
    std::function<void(std::string_view)> note;
    /// Called after each batch, and after each epoch with epoch_done. An exception that it throws
    /// ends the training and arrives at the caller. The checkpoints saved so far remain.
    std::function<void(const TrainProgress&)> progress;
    std::function<void(std::string_view, int, int)> planning;  ///< as NetOptions::progress
};

struct TrainResult {
    int epochs = 0;  ///< all epochs of training, those before a checkpoint included
    double train_loss = 0, train_accuracy = 0;  ///< of the last epoch
    double test_loss = 0, test_accuracy = -1;   ///< after it; accuracy -1: there is no test set
    std::string model;                          ///< path of the weights file
};

/// Trains. Exactly one of `config` and `config_text` must be set. Throws Error for what is wrong in
/// the call, the configuration, the data or the network; and Error(numeric) where a loss is not
/// finite, which names the first operator whose output is not (unless the configuration has
/// "on_nan": "continue", which skips the batch).
TrainResult train(const Context& context, const TrainCall& call);

}  // namespace dlprim
