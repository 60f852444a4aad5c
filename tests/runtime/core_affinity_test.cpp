// SPDX-License-Identifier: MIT
// Each thread of a runtime is bound to a core, or to none with DLPRIM_AFFINITY=0. This is a
// separate program, because threads are bound once per process.
#include "support/catch.hpp"

#include <dlprim/context.hpp>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include <sched.h>
#include <unistd.h>

using namespace dlprim;

namespace {

std::vector<int> cores_of(pid_t thread) {
    cpu_set_t set;
    CPU_ZERO(&set);
    std::vector<int> cores;
    if (sched_getaffinity(thread, sizeof(set), &set) == 0)
        for (int core = 0; core < CPU_SETSIZE; ++core)
            if (CPU_ISSET(core, &set)) cores.push_back(core);
    return cores;
}

// The cores of those threads of this process that may run on a single core.
std::vector<int> bound_cores() {
    std::vector<int> bound;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task"))
        if (const auto cores = cores_of(std::stoi(entry.path().filename().string()));
            cores.size() == 1)
            bound.push_back(cores[0]);
    std::sort(bound.begin(), bound.end());
    return bound;
}

}  // namespace

TEST_CASE("a processor's threads have a core each") {
    const std::vector<int> own = cores_of(0);
    const char* wanted = std::getenv("DLPRIM_AFFINITY");
    const bool off = wanted != nullptr && std::string(wanted) == "0";
    std::vector<Context> open;  // keeps the runtime's threads alive
    bool tried = false;
    for (const DeviceInfo& info : Context::devices()) {
        if (info.platform != "Portable Computing Language") continue;
        open.emplace_back(info.id);
        open.emplace_back(info.id);  // opening again changes nothing
        const auto units = static_cast<std::size_t>(open.back().traits().compute_units);
        if (own.size() < 2 || units != own.size()) continue;
        tried = true;
        CHECK(bound_cores() == (off ? std::vector<int>{} : own));
    }
    CHECK(cores_of(0) == own);
    if (!tried) WARN("no such device here: PoCL with as many threads as cores, two at least");
}
