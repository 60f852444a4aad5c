// SPDX-License-Identifier: MIT
// Frozen operators and first values.
#include "api/training/initial.hpp"

#include "api/net_impl.hpp"
#include "api/param_source.hpp"
#include "api/placement/placed_net_impl.hpp"
#include "api/training/listed.hpp"
#include "base/env.hpp"
#include "base/text.hpp"
#include "formats/hdf5_file.hpp"
#include "formats/json_net.hpp"
#include "graph/operator.hpp"

#include <fnmatch.h>
#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>

namespace dlprim {

namespace {

constexpr std::size_t most_names = 24;  ///< of each list in a message

bool matches(const std::string& name, const std::vector<std::string>& patterns) {
    return std::any_of(patterns.begin(), patterns.end(), [&](const std::string& pattern) {
        return ::fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
    });
}

/// The name that a parameter of the file has in the network.
std::string renamed(const std::string& name, const TrainConfig::Initial& how) {
    for (const auto& [from, to] : how.rename)
        if (name.compare(0, from.size(), from) == 0) return to + name.substr(from.size());
    return name;
}

/// What became of the parameters of a file and of a network.
struct Matching {
    std::map<std::string, std::string> taken;  ///< by the network's name: the file's
    std::vector<std::string> other_shape, excluded, left, unused;
};

/// The parameters of a file, and their values.
class Given {
  public:
    Given(const std::string& path, const ReadWeights& read) {
        if (!read) {
            file_.emplace(path);
            datasets_ = file_->datasets();
            return;
        }
        values_ = read(path);
        for (const auto& [name, value] : values_)
            datasets_.push_back({name, value.shape, value.dtype});
    }
    const std::vector<Hdf5Dataset>& datasets() const { return datasets_; }
    void read(const std::string& name, Tensor to) const {
        std::vector<std::byte> data(to.bytes());
        if (file_)
            file_->read(name, to.dtype(), data.data(), data.size());
        else
            convert(values_.at(name).data.data(), values_.at(name).dtype, data.data(), to.dtype(),
                    static_cast<std::size_t>(to.shape().numel()));
        to.copy_from_host(data.data(), data.size());
    }

  private:
    std::optional<Hdf5Reader> file_;
    std::map<std::string, HostTensor> values_;
    std::vector<Hdf5Dataset> datasets_;
};

Matching match(Net& net, const Given& file, const TrainConfig::Initial& how) {
    Matching found;
    const std::vector<std::string> names = net.param_names();
    const std::set<std::string> wanted(names.begin(), names.end());
    std::set<std::string> seen;
    for (const Hdf5Dataset& dataset : file.datasets()) {
        if (is_checkpoint_state(dataset.name)) continue;
        const std::string name = renamed(dataset.name, how);
        if (!wanted.count(name)) {
            found.unused.push_back(dataset.name);
            continue;
        }
        seen.insert(name);
        const Shape want = net.param_shape(name);
        if ((!how.include.empty() && !matches(name, how.include)) || matches(name, how.exclude))
            found.excluded.push_back(name);
        else if (dataset.shape != want)
            found.other_shape.push_back(
                cat(name, " (", dataset.shape.str(), ", not ", want.str(), ")"));
        else
            found.taken[name] = dataset.name;
    }
    for (const std::string& name : names)
        if (!seen.count(name)) found.left.push_back(name);
    for (auto* list : {&found.other_shape, &found.excluded}) std::sort(list->begin(), list->end());
    return found;
}

std::string summary(const Matching& found, const std::string& path, std::size_t all) {
    std::string text = cat("'", path, "' gives ", found.taken.size(), " of ", all, " parameters");
    const auto add = [&](const char* what, const std::vector<std::string>& names) {
        if (!names.empty()) text += cat("; ", what, ": ", listed(names, most_names));
    };
    add("not in the file", found.left);
    add("of another shape", found.other_shape);
    add("excluded", found.excluded);
    add("not in the network", found.unused);
    return text;
}

std::vector<std::string> take_by_patterns(Net& net, const TrainConfig& config,
                                          const ReadWeights& read) {
    const TrainConfig::Initial& how = config.initial;
    const Given file(how.weights, read);
    const Matching found = match(net, file, how);
    const std::string text = summary(found, how.weights, net.param_names().size());
    if (found.taken.empty())
        fail(ErrorKind::format, config.name, ": initial.weights: ", text,
             ": nothing would be taken from it");
    for (const auto& [name, source] : found.taken) file.read(source, net.param(name));
    net.params_changed();
    return {text};
}

void load_whole(Net& net, const std::string& path, const ReadWeights& read) {
    try {
        if (read)
            net.load_weights(read(path), path);
        else
            net.load_weights(path);
    } catch (const Error& error) {
        if (error.kind() != ErrorKind::not_found || !std::filesystem::exists(path)) throw;
        fail(error.kind(), error.what(), "; \"initial\" takes what two networks have in common");
    }
}

/// Parameters that no solver trains, but that a forward in training changes: running statistics.
std::set<std::string> changed_by_training(const Graph& graph) {
    std::set<std::string> names;
    for (const Node& node : graph.nodes) {
        if (node.frozen) continue;
        const auto first = static_cast<std::size_t>(node.op->min_inputs());
        for (const std::size_t param : node.op->written_params(node.attrs))
            names.insert(graph.value(node.inputs.at(first + param)).name);
    }
    return names;
}

NetDescription training_description(const TrainConfig& config) {
    NetDescription net = parse_net_json(read_file(config.net), config.net);
    std::vector<std::string> names;
    for (const std::string& pattern : config.initial.freeze) {
        bool any = false;
        for (NetDescription::Op& op : net.operators) {
            names.push_back(op.name);
            if (!matches(op.name, {pattern})) continue;
            any = op.frozen = true;
        }
        if (!any)
            fail(ErrorKind::format, config.name, ": initial.freeze: no operator of '", config.net,
                 "' matches '", pattern, "'", did_you_mean(pattern, names));
    }
    return net;
}

}  // namespace

Net open_training_net(const Context& context, const TrainConfig& config, NetOptions options) {
    options.batch = config.shard_batch();
    return Access::handle<Net>(
        std::make_shared<NetImpl>(context, training_description(config), options));
}

PlacedNet open_placed_net(const std::vector<NamedDevice>& devices, const TrainConfig& config,
                          NetOptions options, const PlacementOptions& placement,
                          const std::map<std::string, std::string>& device_of) {
    options.batch = config.shard_batch();
    NetDescription net = training_description(config);
    for (NetDescription::Op& op : net.operators)
        if (const auto found = device_of.find(op.name); found != device_of.end())
            op.device = found->second;
    return Access::handle<PlacedNet>(
        std::make_shared<PlacedNetImpl>(devices, std::move(net), options, placement));
}

bool meets_in_steps(const TrainConfig& config) {
    if (config.solver.shards == 1) return false;
    const NetDescription net = training_description(config);
    return std::any_of(net.operators.begin(), net.operators.end(),
                       [](const NetDescription::Op& op) {
                           return op.type == "BatchNorm" && !op.frozen && op.options.has("sync") &&
                                  op.options.boolean("sync");
                       });
}

std::vector<std::string> set_initial_values(Net& net, const TrainConfig& config,
                                            const ReadWeights& read) {
    std::vector<std::string> notes;
    net.initialize(config.initialization);
    if (!config.weights.empty()) load_whole(net, config.weights, read);
    if (!config.initial.weights.empty()) notes = take_by_patterns(net, config, read);
    if (config.initial.freeze.empty()) return notes;
    const std::set<std::string> changed = changed_by_training(core_of(net).base_graph());
    std::vector<std::string> frozen;
    for (const std::string& name : net.param_names())
        if (!net.is_trainable(name) && changed.count(name) == 0) frozen.push_back(name);
    notes.push_back(cat("not trained: ", listed(frozen, most_names)));
    return notes;
}

}  // namespace dlprim
