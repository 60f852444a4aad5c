// SPDX-License-Identifier: MIT
// open_devices, open_device: the devices of a team by a text, as the option -d has it.
#include <dlprim/team.hpp>

#include "base/text.hpp"

namespace dlprim {

namespace {

std::vector<std::string> names_of_gpus() {
    std::vector<std::string> names;
    for (const DeviceInfo& info : Context::devices())
        if (info.kind == DeviceKind::gpu) names.push_back(info.id);
    if (names.empty())
        fail(ErrorKind::not_found, "there is no GPU for 'gpus'; --list shows the devices");
    return names;
}

}  // namespace

std::vector<Context> open_devices(std::string_view names) {
    std::vector<Context> contexts;
    for (const std::string& name :
         names == "gpus" ? names_of_gpus() : split(std::string(names), ','))
        contexts.emplace_back(name);
    return contexts;
}

Context open_device(std::string_view names, const Processes& processes) {
    const bool means_gpus =
        names == "gpus" || (names.empty() && Context::find().kind == DeviceKind::gpu);
    const std::vector<std::string> all =
        means_gpus ? names_of_gpus() : split(std::string(names), ',');
    return Context(all[static_cast<std::size_t>(processes.local_rank()) % all.size()]);
}

}  // namespace dlprim
