// SPDX-License-Identifier: MIT
// The devices under test.
#include "support/devices.hpp"

#include <cstdlib>
#include <sstream>

namespace dlprim::testing {

namespace {

std::vector<Context>* open_devices() {
    auto* all = new std::vector<Context>;
    const std::vector<DeviceInfo> present = Context::devices();
    const char* wanted = std::getenv("DLPRIM_TEST_DEVICES");
    if (wanted == nullptr || *wanted == '\0') {
        for (const DeviceInfo& info : present) all->emplace_back(info.id);
        return all;
    }
    std::istringstream names(wanted);
    for (std::string name; std::getline(names, name, ',');) {
        std::string platform;
        if (name == "pocl") platform = "Portable";
        if (name == "intel") platform = "Intel";
        bool found = false;
        for (const DeviceInfo& info : present) {
            if (platform.empty() || info.platform.find(platform) == std::string::npos || found)
                continue;
            all->emplace_back(info.id);
            found = true;
        }
        if (!platform.empty() || found) continue;
        try {
            all->emplace_back(name);
        } catch (const Error& error) {
            if (error.kind() != ErrorKind::not_found) throw;
        }
    }
    return all;
}

}  // namespace

const std::vector<Context>& test_devices() {
    static const auto* devices = open_devices();
    return *devices;
}

}  // namespace dlprim::testing
