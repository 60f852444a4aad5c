// SPDX-License-Identifier: MIT
// The network of a configuration, with what of it is frozen, and its first values: initialised, or
// those of another network's weights file by patterns (fine-tuning).
#pragma once

#include "train/config.hpp"

#include <dlprim/net.hpp>
#include <dlprim/placed_net.hpp>

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace dlprim {

/// Opens the network for the batch of a shard, with the operators frozen that `initial.freeze`
/// names. Throws Error.
Net open_training_net(const Context& context, const TrainConfig& config, NetOptions options);
/// The same on several devices. `device_of`: if not empty, the device of every operator, in place
/// of those that operators name.
PlacedNet open_placed_net(const std::vector<NamedDevice>& devices, const TrainConfig& config,
                          NetOptions options, const PlacementOptions& placement,
                          const std::map<std::string, std::string>& device_of = {});

/// Whether a batch norm of the network takes statistics of all shards ("sync"), so that each shard
/// of a batch needs a rank of its own. Throws as open_training_net() does.
bool meets_in_steps(const TrainConfig& config);

/// How a weights file is read. Empty: as load_tensors(), without all of it in memory.
using ReadWeights = std::function<std::map<std::string, HostTensor>(const std::string& path)>;

/// Gives all parameters values. Returns notes: which came from the file, which were left, and which
/// are frozen. Throws Error, which names the file.
std::vector<std::string> set_initial_values(Net& net, const TrainConfig& config,
                                            const ReadWeights& read);

}  // namespace dlprim
