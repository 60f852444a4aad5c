// SPDX-License-Identifier: MIT
// Opens the devices of a team by a text: names with commas between them, of which "gpus" is all
// GPUs.
#include "base/text.hpp"

#include <dlprim/team.hpp>

namespace dlprim {

namespace {

std::vector<std::string> ids_of_gpus() {
    std::vector<std::string> all;
    for (const DeviceInfo& info : Context::devices())
        if (info.kind == DeviceKind::gpu) all.push_back(info.id);
    if (all.empty())
        fail(ErrorKind::not_found, "there is no GPU for 'gpus'; dlprim_doctor shows the devices");
    return all;
}

/// The names in a text. No text at all is one empty name, the default device's.
std::vector<std::string> names_in(std::string_view names) {
    const std::vector<std::string> given = split(std::string(names), ',');
    std::vector<std::string> all;
    for (const std::string& name : given) {
        require(!name.empty() || given.size() == 1, "'", names,
                "' lacks a device beside a comma: several devices are given as 0:0,0:1");
        const bool is_all = name == "gpus";
        for (const std::string& each : is_all ? ids_of_gpus() : std::vector{name})
            all.push_back(each);
    }
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
