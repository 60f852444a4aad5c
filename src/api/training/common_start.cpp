// SPDX-License-Identifier: MIT
// What the processes of a run agree on.
#include "api/training/common_start.hpp"

#include "base/env.hpp"
#include "base/hash.hpp"
#include "base/text.hpp"
#include "collective/processes/process_group.hpp"
#include "formats/json_tree.hpp"
#include "runtime/access.hpp"
#include "train/data/data_digest.hpp"

#include <dlprim/version.hpp>

#include <algorithm>

namespace dlprim {

namespace {

TrainConfig config_of(const TrainCall& call) {
    require(call.config.empty() != call.config_text.empty(),
            "train() needs a configuration, either as a file or as a text");
    if (call.config.empty())
        return parse_train_config(call.config_text, "configuration", call.epochs);
    return read_train_config(call.config, call.epochs);
}

std::string text_of(const JsonView& value) {
    if (value.is_text()) return value.text();
    if (value.is_integer()) return cat(value.integer());
    if (value.is_number()) return exact(value.number());
    if (const bool* const boolean = std::get_if<bool>(&value.value().data))
        return *boolean ? "true" : "false";
    return "null";
}

/// All values of a configuration with their paths, as "augmentation.flip".
void add_values(ProcessGroup::Fields& fields, const JsonView& view) {
    if (view.is_object())
        for (const auto& [key, value] : view.object()) add_values(fields, value);
    else if (view.is_array())
        for (const JsonView& value : view.array()) add_values(fields, value);
    else
        fields.emplace_back(view.path(), text_of(view));
}

/// The configuration value by value, so that a difference has a name, and as a whole.
void add_configuration(ProcessGroup::Fields& fields, const TrainCall& call) {
    const std::string text = call.config.empty() ? call.config_text : read_file(call.config);
    ProcessGroup::Fields values;
    add_values(values, JsonDocument(text, call.config).root());
    std::sort(values.begin(), values.end());
    fields.insert(fields.end(), values.begin(), values.end());
    fields.emplace_back("the configuration's digest", hash_hex(text));
}

/// What the processes of a run must have in common, before any of them plans its network.
ProcessGroup::Fields fields_of(const TrainConfig& config, const TrainCall& call) {
    ProcessGroup::Fields fields{{"the version of dlprim", DLPRIM_VERSION}};
    for (const auto& [key, value] : settings_of(config)) fields.emplace_back(key, value);
    fields.emplace_back("epochs", cat(config.epochs));
    fields.emplace_back("order", config.any_order ? "any" : "tree");
    fields.emplace_back("precision", call.precision     ? std::string(name_of(*call.precision))
                                     : config.precision ? std::string(name_of(*config.precision))
                                                        : "fp32");
    for (const auto& [name, precision] : call.precisions)
        fields.emplace_back(cat("precision of ", name), std::string(name_of(precision)));
    std::vector<std::string> shares;
    for (const int share : call.shards_of_devices) shares.push_back(cat(share));
    fields.emplace_back("shards of devices", call.measure_shards ? "measured" : join(shares, ","));
    fields.emplace_back("the network's digest", hash_hex(read_file(config.net)));
    add_configuration(fields, call);
    return fields;
}

}  // namespace

ProcessGroup::Fields fields_of(const Feeder& feeder) {
    return {{"the number of training examples", cat(feeder.size())},
            {"the number of classes", cat(feeder.data().classes().size())},
            {"the digest of training labels and of 16 examples", data_digest(feeder.data())}};
}

ProcessGroup* group_of(const TrainCall& call) {
    return call.processes.size() > 1 ? Access::impl(call.processes).get() : nullptr;
}

TrainConfig common_config(const TrainCall& call) {
    TrainConfig config = config_of(call);
    if (ProcessGroup* const group = group_of(call)) group->agree(fields_of(config, call));
    return config;
}

ResumeFrom common_resume(const TrainCall& call, const RunFolder& folder) {
    ProcessGroup* const group = group_of(call);
    if (group == nullptr) return resolve_resume(call, folder);
    ResumeFrom from;
    if (group->rank() == 0) from = resolve_resume(call, folder);
    from.path = group->share(from.path, "the checkpoint to go on from");
    from.in_folder = group->share(from.in_folder ? "1" : "0", "whose checkpoint it is") == "1";
    return from;
}

}  // namespace dlprim
