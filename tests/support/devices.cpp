// SPDX-License-Identifier: MIT
// The devices under test.
#include "support/devices.hpp"

#include "graph/operator.hpp"

#include <cstdlib>
#include <iostream>
#include <iterator>
#include <set>
#include <sstream>
#include <string_view>

namespace dlprim::testing {

namespace {

std::string kind_of(const DeviceInfo& info) {
    if (info.id == "cpu") return "host";
    if (info.platform.find("Portable") != std::string::npos) return "pocl";
    return info.platform == "Intel(R) OpenCL" ? "intel" : "other";
}

/// The runtimes of OpenCL for this machine's processor that are installed.
const std::set<std::string>& processor_runtimes() {
    static const auto* runtimes = [] {
        auto* kinds = new std::set<std::string>;
        for (const DeviceInfo& info : Context::devices())
            if (const std::string kind = kind_of(info); kind == "pocl" || kind == "intel")
                kinds->insert(kind);
        return kinds;
    }();
    return *runtimes;
}

/// Whether DLPRIM_TEST_TURN leaves the device to other entries.
bool is_for_others(const DeviceInfo& info) {
    const char* const turn = std::getenv("DLPRIM_TEST_TURN");
    const std::set<std::string>& runtimes = processor_runtimes();
    const auto mine = runtimes.find(kind_of(info));
    if (turn == nullptr || mine == runtimes.end()) return false;
    return std::strtoul(turn, nullptr, 10) % runtimes.size() !=
           static_cast<std::size_t>(std::distance(runtimes.begin(), mine));
}

std::vector<Context>* open_devices() {
    OperatorRegistry::instance();  // registers engines too, for tests that use only those
    auto* all = new std::vector<Context>;
    const std::vector<DeviceInfo> present = Context::devices();
    const char* wanted = std::getenv("DLPRIM_TEST_DEVICES");
    if (wanted == nullptr || *wanted == '\0') {
        for (const DeviceInfo& info : present)
            if (!is_for_others(info)) all->emplace_back(info.id);
        return all;
    }
    std::istringstream names(wanted);
    for (std::string name; std::getline(names, name, ',');) {
        const auto before = all->size();
        for (const DeviceInfo& info : present)
            if (kind_of(info) == name) all->emplace_back(info.id);
        if (all->size() > before || name == "host" || name == "pocl" || name == "intel" ||
            name == "other")
            continue;
        try {
            all->emplace_back(name);
        } catch (const Error& error) {
            if (error.kind() != ErrorKind::not_found) throw;
        }
    }
    if (all->empty()) {
        // Nothing is left to try, and the oracles of all cases would take their time.
        std::cout << "no such device here" << std::endl;
        std::exit(0);
    }
    return all;
}

}  // namespace

const std::vector<Context>& test_devices() {
    static const auto* devices = open_devices();
    return *devices;
}

std::vector<Context> contexts_like(const Context& device, std::size_t count) {
    std::vector<std::string> ids;
    for (const DeviceInfo& info : Context::devices())
        if (info.name == device.info().name && info.platform == device.info().platform)
            ids.push_back(info.id);
    std::vector<Context> contexts;
    for (std::size_t i = 0; i < count; ++i) contexts.emplace_back(ids[i % ids.size()]);
    return contexts;
}

Share share_of(const Context& device) {
    static const char* const shared = std::getenv("DLPRIM_TEST_SHARED");
    if (shared == nullptr || std::string_view(shared) == "alone") return {};
    const std::set<std::string>& runtimes = processor_runtimes();
    const auto mine = runtimes.find(kind_of(device.info()));
    if (mine == runtimes.end()) return {};
    return {static_cast<unsigned>(std::distance(runtimes.begin(), mine)),
            static_cast<unsigned>(runtimes.size())};
}

Share sample_of(const Context& device) {
    const Share share = share_of(device);
    return std::getenv("DLPRIM_TEST_SHARED") == nullptr ? share
                                                        : Share{share.index, share.count * 2};
}

}  // namespace dlprim::testing
