// SPDX-License-Identifier: MIT
// Counting chances.
#include "support/turns.hpp"

#include <bit>
#include <cstdlib>
#include <string_view>

namespace dlprim::testing {

bool Turns::take(const std::string& kind, const Context& device) {
    static const char* const force = std::getenv("DLPRIM_TEST_FORCE");
    static const bool all = force != nullptr && std::string_view(force) == "all";
    if (all || device.traits().host) return true;
    return std::has_single_bit(++chances_[device.info().id + ' ' + kind]);
}

}  // namespace dlprim::testing
