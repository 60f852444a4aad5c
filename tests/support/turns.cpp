// SPDX-License-Identifier: MIT
// Counting chances.
#include "support/turns.hpp"

#include "support/devices.hpp"

#include <bit>
#include <cstdlib>
#include <string_view>
#include <utility>

namespace dlprim::testing {

namespace {

const char* engine_asked_for() {
    static const char* const part = std::getenv("DLPRIM_TEST_ENGINE");
    return part;
}

}  // namespace

bool Turns::asked_for(std::string_view engine) {
    return engine_asked_for() == nullptr ||
           engine.find(engine_asked_for()) != std::string_view::npos;
}

bool Turns::tried(const std::vector<Context>& devices) {
    return std::exchange(tried_, false) || engine_asked_for() == nullptr || devices.empty();
}

bool Turns::take(const std::string& kind, const Context& device) {
    if (!asked_for(kind)) return false;
    tried_ = true;
    static const char* const force = std::getenv("DLPRIM_TEST_FORCE");
    static const bool all = force != nullptr && std::string_view(force) == "all";
    if (all || device.traits().host) return true;
    const unsigned chance = ++chances_[device.info().id + ' ' + kind];
    if (!std::has_single_bit(chance)) return false;
    const auto power = static_cast<unsigned>(std::countr_zero(chance));
    static const bool shared = std::getenv("DLPRIM_TEST_SHARED") != nullptr;
    if (!shared || chance == 1) return true;
    return power % 2 == 0 && share_of(device).has(power / 2);
}

}  // namespace dlprim::testing
