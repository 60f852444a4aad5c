// SPDX-License-Identifier: MIT
// Atomic updates, from several threads, of the plain numbers in Counters.
#pragma once

#include <atomic>
#include <cstdint>

namespace dlprim {

inline void count(std::uint64_t& counter, std::uint64_t amount = 1) noexcept {
    std::atomic_ref<std::uint64_t>(counter).fetch_add(amount, std::memory_order_relaxed);
}
inline void uncount(std::uint64_t& counter, std::uint64_t amount) noexcept {
    std::atomic_ref<std::uint64_t>(counter).fetch_sub(amount, std::memory_order_relaxed);
}
inline std::uint64_t counted(std::uint64_t& counter) noexcept {
    return std::atomic_ref<std::uint64_t>(counter).load(std::memory_order_relaxed);
}

}  // namespace dlprim
