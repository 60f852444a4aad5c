// SPDX-License-Identifier: MIT
// set_call_names: the process has one function that names calls.
#include "base/call_name.hpp"

#include "base/text.hpp"

#include <mutex>
#include <utility>

namespace dlprim {
namespace {

struct CallNames {
    std::mutex mutex;
    std::function<std::string()> name;
};

// Never destroyed: threads may make calls while the process ends.
CallNames& call_names() {
    static auto* names = new CallNames;
    return *names;
}

}  // namespace

void set_call_names(std::function<std::string()> name) {
    const std::lock_guard lock(call_names().mutex);
    call_names().name = std::move(name);
}

std::string call_name() {
    const std::lock_guard lock(call_names().mutex);
    return call_names().name ? call_names().name() : std::string();
}

std::string of_call(std::string_view name, std::string_view text) {
    return name.empty() ? std::string(text) : cat(name, ": ", text);
}

}  // namespace dlprim
