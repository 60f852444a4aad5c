// SPDX-License-Identifier: MIT
// The host as a device: its name, its vector units, memory and rates.
#include "base/env.hpp"
#include "base/text.hpp"
#include "runtime/devices.hpp"
#include "runtime/host_vector_width.hpp"

#include <dlprim/version.hpp>

#include <algorithm>
#include <fstream>
#include <limits>
#include <mutex>
#include <string>

#include <pthread.h>
#include <unistd.h>

namespace dlprim {
namespace {

// The value of the first line of /proc/cpuinfo that starts with `key`.
std::string cpuinfo(std::string_view key) {
    std::ifstream file("/proc/cpuinfo", std::ios::binary);
    std::string line;
    while (std::getline(file, line)) {
        if (line.compare(0, key.size(), key) != 0) continue;
        const std::size_t colon = line.find(':');
        if (colon != std::string::npos && colon + 2 <= line.size()) return line.substr(colon + 2);
    }
    return {};
}

// Floats in the widest vector whose instructions host_vector_width() names, before DLPRIM_TRAITS.
int processor_vector_width() {
#if defined(__x86_64__)
#define DLPRIM_HAS(feature) static_cast<bool>(__builtin_cpu_supports(feature))
    if (!DLPRIM_HAS("avx2") || !DLPRIM_HAS("fma") || !DLPRIM_HAS("bmi") || !DLPRIM_HAS("bmi2"))
        return 4;
    return DLPRIM_HAS("avx512f") && DLPRIM_HAS("avx512bw") && DLPRIM_HAS("avx512cd") &&
                   DLPRIM_HAS("avx512dq") && DLPRIM_HAS("avx512vl")
               ? 16
               : 8;
#undef DLPRIM_HAS
#else
    return 4;
#endif
}

}  // namespace

int host_vector_width() {
    static const int found = []() {
        Traits traits;
        traits.vector_width = processor_vector_width();
        lower_traits(traits);
        return traits.vector_width;
    }();
    return found;
}

std::uint64_t host_memory() {
    const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGE_SIZE);
    std::uint64_t bytes = pages > 0 && page > 0
                              ? static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(page)
                              : std::uint64_t{1} << 33;
    for (const char* path :
         {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
        std::ifstream file(path, std::ios::binary);
        std::string line;
        std::getline(file, line);
        const auto limit = leading_number<std::uint64_t>(line, 0);
        if (limit > 0) bytes = std::min(bytes, limit);
    }
    return bytes;
}

DeviceInfo host_info() {
    DeviceInfo info;
    info.id = "cpu";
    info.name = cpuinfo("model name");
    if (info.name.empty()) info.name = "host processor";
    info.platform = "host";
    info.vendor = cpuinfo("vendor_id");
    info.driver = DLPRIM_VERSION;
    info.kind = DeviceKind::host;
    info.memory_mib = static_cast<std::uint32_t>(host_memory() >> 20);
    return info;
}

Traits host_traits() {
    Traits traits;
    traits.host = true;
    traits.wide_vectors = true;
    traits.vector_width = processor_vector_width();
    traits.vector_registers = traits.vector_width >= 16 ? 32 : 16;
#if defined(__aarch64__)
    traits.vector_registers = 32;
#endif
    traits.compute_units = shared_pool().threads();
    traits.global_bytes = host_memory();
    traits.max_alloc_bytes = traits.global_bytes;
    const long cache = sysconf(_SC_LEVEL3_CACHE_SIZE);
    traits.cache_bytes = cache > 0 ? static_cast<std::uint64_t>(cache) : 0;
    traits.local_bytes = 32 * 1024;
    traits.base_align_bytes = 64;
    traits.fp64 = true;
    traits.unified_memory = true;
    double ghz = leading_number(cpuinfo("cpu MHz"), 0.0);
    ghz = ghz > 100 ? ghz / 1000 : 2.5;
    traits.gflops = traits.compute_units * ghz * traits.vector_width * 4;
    traits.gbytes_per_s = 20;
    traits.launch_us = 1;
    return traits;
}

namespace {

struct SharedPool {
    std::mutex mutex;
    HostPool* pool = nullptr;
};

SharedPool& shared() {
    static SharedPool* const instance = [] {
        auto* made = new SharedPool;
        // fork() takes mutexes in the reverse order of their handlers' registration. That of
        // variables has to be registered before, since shared_pool() takes it last, too.
        (void)env("DLPRIM_THREADS");
        // A child of fork() has none of the threads, so contexts that it opens use a new pool.
        pthread_atfork([] { shared().mutex.lock(); }, [] { shared().mutex.unlock(); },
                       [] {
                           shared().pool = nullptr;
                           shared().mutex.unlock();
                       });
        return made;
    }();
    return *instance;
}

}  // namespace

HostPool& shared_pool() {
    // Never destroyed: contexts with static lifetime may live longer than any static of this
    // library.
    SharedPool& all = shared();
    const std::lock_guard lock(all.mutex);
    if (all.pool == nullptr) all.pool = new HostPool;
    return *all.pool;
}

}  // namespace dlprim
