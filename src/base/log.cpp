// SPDX-License-Identifier: MIT
// The log hook: the process has one receiver, and calls to it are serialised.
#include <dlprim/log.hpp>

#include <mutex>

namespace dlprim {
namespace {

struct Receiver {
    std::mutex mutex;
    std::function<void(LogLevel, std::string_view)> call;
};

// Never destroyed: objects with static lifetime may log while the process ends.
Receiver& receiver() {
    static Receiver* instance = new Receiver;
    return *instance;
}

}  // namespace

void set_log(std::function<void(LogLevel, std::string_view)> call) {
    const std::lock_guard lock(receiver().mutex);
    receiver().call = std::move(call);
}

void log(LogLevel level, std::string_view line) {
    const std::lock_guard lock(receiver().mutex);
    if (receiver().call) receiver().call(level, line);
}

}  // namespace dlprim
