// SPDX-License-Identifier: MIT
// The log hook: the process has one receiver, and calls to it are serialised.
#include <dlprim/log.hpp>

#include "base/call_name.hpp"
#include "base/kept_log.hpp"

#include <atomic>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace dlprim {
namespace {

struct Receiver {
    std::mutex mutex;
    std::function<void(LogLevel, std::string_view)> call;
    std::mutex kept_mutex;  ///< protects what follows
    std::vector<std::pair<LogLevel, std::string>> kept;
    std::atomic<bool> any_kept{false};
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
    if (KeptLog::active()) {
        const std::lock_guard lock(receiver().kept_mutex);
        receiver().kept.emplace_back(level, of_call(LogOfCall::name(), line));
        receiver().any_kept = true;
        return;
    }
    const std::lock_guard lock(receiver().mutex);
    if (receiver().call) receiver().call(level, line);
}

void pass_kept_log() {
    if (KeptLog::active() || !receiver().any_kept) return;
    std::vector<std::pair<LogLevel, std::string>> lines;
    {
        const std::lock_guard lock(receiver().kept_mutex);
        lines.swap(receiver().kept);
        receiver().any_kept = false;
    }
    for (const auto& [level, line] : lines) log(level, line);
}

}  // namespace dlprim
