// SPDX-License-Identifier: MIT
// TrainTask: what a run trains, and on which data: the network and the data sets of a
// configuration, unless a class that derives from it names others (language/training.cpp). The run
// itself, with its epochs, tests, checkpoints, metrics and reports, is the same for all.
#pragma once

#include "api/training/initial.hpp"
#include "api/training/judging.hpp"
#include "api/training/roles.hpp"
#include "api/training/run_folder.hpp"
#include "api/training/run_state.hpp"
#include "train/config.hpp"
#include "train/data/open_data.hpp"

#include <dlprim/net.hpp>
#include <dlprim/trainer.hpp>

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace dlprim {

class TrainTask {
  public:
    explicit TrainTask(TrainConfig config) : config_(std::move(config)) {}
    virtual ~TrainTask() = default;
    TrainTask(const TrainTask&) = delete;
    TrainTask& operator=(const TrainTask&) = delete;

    const TrainConfig& config() const { return config_; }
    /// What decides the bits of the results.
    virtual Settings settings() const { return settings_of(config_); }
    virtual DataParts data() const { return open_data(config_.data, config_.seed); }
    /// The network for one device, for training or inference as the options say.
    virtual Net open_net(const Context& context, const NetOptions& options) const {
        return open_training_net(context, config_, options);
    }
    virtual Roles roles(Net& net) const { return roles_of(net); }
    /// Names of the metrics.
    virtual std::vector<std::string> metrics(const Roles& roles, TargetKind targets) const {
        return metrics_for(roles, targets, config_);
    }
    /// Gives all parameters values. Returns notes.
    virtual std::vector<std::string> set_initial_values(Net& net, const ReadWeights& read) const {
        return dlprim::set_initial_values(net, config_, read);
    }
    /// Sets the inputs, besides examples and labels, that are the same for all batches.
    virtual void set_fixed_inputs(Net&) const {}
    /// Writes what has been trained. `how` tells how pictures became inputs, if they are. Returns
    /// the path.
    virtual std::string save(Net& net, const RunFolder& folder,
                             const std::optional<Preprocessing>& how);

  private:
    const TrainConfig config_;
};

/// train(), of any task. `devices` are those of operators, or empty where the contexts train by a
/// team.
TrainResult train_task(const std::vector<Context>& contexts,
                       const std::vector<NamedDevice>& devices, const TrainCall& call,
                       TrainTask& task);

}  // namespace dlprim
