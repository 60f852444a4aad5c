// SPDX-License-Identifier: MIT
// train(): trains a network from a configuration file, what dlprim_train does. See docs/json.md.
#pragma once

#include <dlprim/context.hpp>
#include <dlprim/precision.hpp>

#include <cstdint>
#include <functional>
#include <string>

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
    std::string out =
        "training";  ///< folder, made if need be: checkpoints, model.h5, metrics.csv, report.html
    std::string resume;                     ///< checkpoint to go on from, or empty
    int epochs = 0;                         ///< instead of the configuration's, when positive
    Precision precision = Precision::fp32;  ///< as NetOptions::precision; resume wants the same
    std::function<void(const TrainProgress&)> progress;        ///< after each batch
    std::function<void(std::string_view, int, int)> planning;  ///< as NetOptions::progress
};

struct TrainResult {
    int epochs = 0;
    double train_loss = 0, train_accuracy = 0, test_loss = 0, test_accuracy = -1;
    std::string model;  ///< weights file
};

/// Throws Error: what is wrong in configuration, data or network; Error(numeric) naming the first
/// operator whose output is not finite where the loss is not (unless "on_nan": "continue", which
/// skips the batch).
TrainResult train(const Context& context, const TrainCall& call);

}  // namespace dlprim
