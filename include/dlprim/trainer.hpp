// SPDX-License-Identifier: MIT
// train(): trains a network that classifies images, as a configuration says. It is what the command
// dlprim_train does. docs/json.md describes the configuration.
//
// The call returns when the training is over. Meanwhile the thread uses the context as for a Net
// and a Solver, so that no other thread may use nets on it (dlprim/context.hpp). The functions of a
// TrainCall are called by the thread that called train().
#pragma once

#include <dlprim/context.hpp>
#include <dlprim/memory_map.hpp>
#include <dlprim/namespace.hpp>
#include <dlprim/placed_net.hpp>
#include <dlprim/precision.hpp>
#include <dlprim/processes.hpp>
#include <dlprim/tensor_file.hpp>

#include <cstdint>
#include <functional>
#include <map>
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
    double accuracy = -1;                 ///< of these batches, from 0 to 1; -1: it is not measured
    double learning_rate = 0;             ///< of the last of these batches
    double images_per_second = 0;         ///< since the epoch began
    bool epoch_done = false;              ///< the epoch is over, and the fields below are set
    double test_loss = 0;                 ///< mean over the test set
    double test_accuracy = -1;            ///< over the test set, from 0 to 1; -1: there is none
    /// The run's metrics by name, the accuracy included: over these batches, and over the test set.
    std::vector<std::pair<std::string, double>> metrics, test_metrics;
};

/// What a run is asked for between two steps.
enum class TrainRequest {
    go_on,
    stop,  ///< to save a checkpoint and end
};

struct TrainCall {
    /// The configuration file. Paths in it are relative to its folder.
    std::string config;
    /// The configuration as text, in place of a file. Paths in it are relative to the working
    /// folder.
    std::string config_text;
    /// The folder of the results: checkpoints, model.h5, metrics.csv, report.html and event files.
    /// It is made if it does not exist. A run owns it: another run in it at the same time is an
    /// error, which names the process.
    std::string out = "training";
    /// The checkpoint file to go on from. "latest" is the last one in `out`; if there is none, the
    /// training begins anew. Empty: a new training.
    std::string resume;
    /// Without it, results of an earlier run in `out` are an error, unless the run goes on from the
    /// last checkpoint among them. With it they are removed when the training starts.
    bool replace = false;
    int epochs = 0;  ///< if positive, in place of the configuration's number of epochs
    /// As NetOptions::precision. Without it the checkpoint's precision is taken, without one the
    /// configuration's, and else fp32. A precision that is not the checkpoint's is an error, which
    /// names both.
    std::optional<Precision> precision;
    /// As NetOptions::precisions. They take precedence over those of the checkpoint.
    std::vector<std::pair<std::string, Precision>> precisions;
    /// If positive, in place of the configuration's "memory_limit": NetOptions::memory_limit of the
    /// training net, in bytes. The net that is tested beside it takes memory of its own.
    std::uint64_t memory_limit = 0;
    /// Called with each of the remarks that Net::notes() returns, with what a resumed run does
    /// otherwise than the run before, and when a file of results could not be written. At the end
    /// of a run with what could not be read of the data, and how long the device waited for data.
    std::function<void(std::string_view)> note;
    /// Called after each batch, and after each epoch with epoch_done. An exception that it throws
    /// ends the training and arrives at the caller. The checkpoints saved so far remain.
    std::function<void(const TrainProgress&)> progress;
    std::function<void(std::string_view, int, int)> planning;  ///< as NetOptions::progress
    /// Called between steps, between the batches of an evaluation, and while the net is planned. If
    /// it returns TrainRequest::stop, train() finishes the step, saves a checkpoint and returns,
    /// with TrainResult::finished false. It must be quick. For signals let it read an atomic flag:
    /// the library itself installs no handlers.
    std::function<TrainRequest()> request;
    /// Reads the files of first weights ("weights" and "initial" of the configuration) in place of
    /// load_tensors(), for example in another process.
    std::function<std::map<std::string, HostTensor>(const std::string& path)> read_weights;
    /// Called once, before the training net allocates, with what its steps will take. Where shards
    /// are measured, that is with as many on each device.
    std::function<void(const MemoryMap&)> memory;
    /// Called in its place where operators have devices of their own, before anything is
    /// allocated, also where parts do not fit.
    std::function<void(const PlacedNet&, const std::vector<PlacedNet::DeviceMemory>&)>
        memory_of_devices;
    /// If set, a file to which a trace of some steps is written: what each device computes, what is
    /// moved, and what waits, in Chrome's trace event format (docs/training.md). The steps are the
    /// run's third one and those that follow. The file is written without steps when the run
    /// starts, which fails if it cannot be, and with them when they are over or the run ends. Each
    /// of several processes writes its own, with its rank in the name: trace.rank1.json.
    std::string trace;
    int trace_steps = 5;  ///< how many steps are traced at most, from 1
    /// As TeamOptions::shards, measure_shards, deadline_seconds and shared_devices.
    std::vector<int> shards_of_devices;
    bool measure_shards = false;
    double deadline_seconds = 600;
    bool shared_devices = true;
    /// The processes that train together, each on one device. All are given the same configuration,
    /// data and options. The first one has the folder of results, and judges the test set; a
    /// checkpoint to go on from is read by all. `request` may ask any of them to stop, which all
    /// then do.
    Processes processes;
    /// For a network whose operators have devices of their own: who chooses these, and how much
    /// memory they may take. Its `solver` is the configuration's.
    PlacementOptions placement;
};

struct TrainResult {
    int epochs = 0;  ///< all epochs of training that are over, those before a checkpoint included
    double train_loss = 0, train_accuracy = -1;  ///< of the last epoch; accuracy -1: not measured
    double test_loss = 0, test_accuracy = -1;    ///< after it; accuracy -1: there is none
    std::string model;  ///< path of the weights file; empty if the run is not finished
    /// Whether the run is over. False if it was asked to stop before.
    bool finished = true;
    std::string checkpoint;  ///< path of the last checkpoint; empty if none was saved
};

/// Trains. A checkpoint, metrics or a report that cannot be written, as on a full disk, do not end
/// the training: `note` is told, and earlier checkpoints stay. Exactly one of `config` and
/// `config_text` must be set. Throws Error for what is wrong in the call, the configuration, the
/// data or the network; and Error(numeric) where a loss is not finite, which names the first
/// operator whose output is not (unless the configuration has "on_nan": "continue", which skips the
/// batch).
TrainResult train(const Context& context, const TrainCall& call);
/// The same on several devices, which compute the configuration's shards together
/// (dlprim/team.hpp); what() of an Error begins with the device that it comes from. The first one
/// judges the test set. Throws Error(invalid_argument) as Team does.
TrainResult train(const std::vector<Context>& contexts, const TrainCall& call);
/// The same of a network whose operators run on these devices (dlprim/placed_net.hpp), where the
/// test set is judged with the same placement. Checkpoints and the weights file are those of one
/// device. With shards all devices work at once. Throws Error for what such a training does not do:
/// what PlacedSolver refuses, shares of devices, sharded states, several processes.
TrainResult train(const std::vector<NamedDevice>& devices, const TrainCall& call);

}  // namespace dlprim
