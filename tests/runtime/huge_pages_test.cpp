// SPDX-License-Identifier: MIT
// Large buffers of processors use memory for which large pages are requested or, with
// DLPRIM_HUGE_PAGES=0, the runtime's own memory. Either way they keep their contents and are freed
// with their context.
#include "support/catch.hpp"

#include <dlprim/tensor.hpp>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

using namespace dlprim;

namespace {

// MiB of this process for which large pages were requested: mappings with the flag "hg".
std::int64_t advised_mib() {
    std::ifstream maps("/proc/self/smaps");
    std::int64_t kib = 0, size = 0;
    for (std::string line; std::getline(maps, line);) {
        if (line.starts_with("Size:")) size = std::stoll(line.substr(5));
        if (line.starts_with("VmFlags:") && line.find(" hg") != std::string::npos) kib += size;
    }
    return kib / 1024;
}

}  // namespace

TEST_CASE("large buffers of processors ask for large pages") {
    const char* wanted = std::getenv("DLPRIM_HUGE_PAGES");
    const bool off = wanted != nullptr && std::string(wanted) == "0";
    const bool none = !std::filesystem::exists("/sys/kernel/mm/transparent_hugepage");
    bool tried = false;
    for (const DeviceInfo& info : Context::devices()) {
        if (info.id == "cpu" || info.kind != DeviceKind::cpu) continue;
        INFO(info.name << ", " << info.platform);
        const std::int64_t before = advised_mib();
        {
            const Context context(info.id);
            Tensor small(context, {1000});  // it shares a segment of the pool with others
            const std::int64_t opened = advised_mib();
            Tensor large(context, {48, 1 << 18}), other(context, {48, 1 << 18});
            large.slice(0, 47, 48).copy_from(std::vector<float>(1 << 18, 3));
            other.slice(0, 0, 1).copy_from(std::vector<float>(1 << 18, 4));
            CHECK(large.slice(0, 47, 48).slice(1, 5, 6).to_floats() == std::vector<float>{3});
            CHECK(other.slice(0, 0, 1).slice(1, 6, 7).to_floats() == std::vector<float>{4});
            CHECK(advised_mib() - opened == (off || none ? 0 : 96));
        }
        CHECK(advised_mib() == before);
        tried = true;
    }
    if (!tried || none)
        WARN("no such device here: an OpenCL processor on a system with large pages");
}
