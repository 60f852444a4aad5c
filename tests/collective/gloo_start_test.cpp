// SPDX-License-Identifier: MIT
// Gloo's start where a process is lost after it has shared its addresses, before it has connected.
#include "collective/processes/transport_plugin.h"
#include "support/catch.hpp"

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <string>
#include <thread>

namespace {

constexpr double seconds = 20;  // for a start, of which Gloo's own waits are five times as long

/// The store of a run of two, of which rank 0 has told its addresses, and then ended.
struct Store {
    std::string addresses;
    int told = -1;  ///< where to tell the own ones and end: rank 0; -1: rank 1
};

int set(void* store, const char*, const void* data, std::size_t bytes) {
    const int told = static_cast<Store*>(store)->told;
    if (told < 0) return 0;
    _exit(::write(told, data, bytes) == static_cast<ssize_t>(bytes) ? 0 : 1);
}

int get(void* store, const char* key, void* data, std::size_t room, std::size_t* bytes) {
    const Store& self = *static_cast<Store*>(store);
    if (self.told >= 0) return 1;
    if (std::string(key).rfind("connected", 0) == 0) {
        std::this_thread::sleep_for(std::chrono::milliseconds(300));
        return 1;  // rank 0 is found to be lost
    }
    *bytes = std::min(room, self.addresses.size());
    std::memcpy(data, self.addresses.data(), *bytes);
    return 0;
}

void* open(const dlprim_transport& plugin, int rank, Store& store) {
    std::array<char, 400> text{};
    const dlprim_transport_start start{rank, 2, seconds, "127.0.0.1", &store, set, get};
    return plugin.open(&start, {text.data(), text.size()});
}

/// What a process as rank 0 told before it ended; empty if it did not come that far.
std::string addresses_of_lost(const dlprim_transport& plugin) {
    std::array<int, 2> ends{};
    if (::pipe(ends.data()) != 0) return {};
    const pid_t child = ::fork();
    if (child == 0) {
        Store store{{}, ends[1]};
        open(plugin, 0, store);
        _exit(1);
    }
    ::close(ends[1]);
    std::array<char, 1024> text{};
    const ssize_t length = ::read(ends[0], text.data(), text.size());
    ::close(ends[0]);
    ::waitpid(child, nullptr, 0);
    return {text.data(), static_cast<std::size_t>(std::max<ssize_t>(length, 0))};
}

}  // namespace

// Of two processes, the one with the lower address waits to be called, so that a start is tried
// until this one surely was it.
TEST_CASE("a start by Gloo ends soon after a process is lost that had told its addresses") {
    void* const library = ::dlopen(DLPRIM_GLOO, RTLD_NOW | RTLD_LOCAL);
    REQUIRE(library != nullptr);
    const dlprim_transport& plugin = *reinterpret_cast<dlprim_transport_plugin_function>(
        ::dlsym(library, "dlprim_transport_plugin"))();
    for (int i = 0; i < 8; ++i) {
        Store store{addresses_of_lost(plugin)};
        REQUIRE_FALSE(store.addresses.empty());
        const auto begun = std::chrono::steady_clock::now();
        CHECK(open(plugin, 1, store) == nullptr);
        const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begun;
        CHECK(took.count() < seconds / 2);
    }
}
