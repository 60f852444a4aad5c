// SPDX-License-Identifier: MIT
// padded(): sizes of what lies side by side in memory of an exchange.
#pragma once

#include <cstdint>

namespace dlprim {

/// The bytes with those up to the next multiple of 256, so that what follows begins where devices
/// read vectors.
constexpr std::uint64_t padded(std::uint64_t bytes) {
    constexpr std::uint64_t alignment = 256;
    return (bytes + alignment - 1) / alignment * alignment;
}

}  // namespace dlprim
