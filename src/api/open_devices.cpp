// SPDX-License-Identifier: MIT
// Opens the devices of a team by a text: names with commas between them, or all GPUs.
#include "base/text.hpp"

#include <dlprim/team.hpp>

namespace dlprim {

namespace {

std::vector<std::string> ids_of_gpus() {
    std::vector<std::string> all;
    for (const DeviceInfo& info : Context::devices())
        if (info.kind == DeviceKind::gpu) all.push_back(info.id);
    if (all.empty())
        fail(ErrorKind::not_found, "there is no GPU for 'gpus'; --list shows the devices");
    return all;
}

/// The names in a text. No text at all is one empty name, the default device's.
std::vector<std::string> names_in(std::string_view names) {
    if (names == "gpus") return ids_of_gpus();
    std::vector<std::string> all = split(std::string(names), ',');
    for (const std::string& name : all)
        require(!name.empty() || all.size() == 1, "'", names,
                "' lacks a device beside a comma: several devices are given as 0:0,0:1");
    return all;
}

}  // namespace

std::vector<Context> open_devices(std::string_view names) {
    std::vector<Context> contexts;
    for (const std::string& name : names_in(names)) contexts.emplace_back(name);
    return contexts;
}

Context open_device(std::string_view names, const Processes& processes) {
    const bool takes_gpus = names.empty() && Context::find().kind == DeviceKind::gpu;
    const std::vector<std::string> all = takes_gpus ? ids_of_gpus() : names_in(names);
    return Context(all[static_cast<std::size_t>(processes.local_rank()) % all.size()]);
}

}  // namespace dlprim
