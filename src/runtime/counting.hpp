// SPDX-License-Identifier: MIT
// Atomic updates, from several threads, of the plain numbers in Counters. Events of a thread are
// not counted while it has an Uncounted.
#pragma once

#include <atomic>
#include <cstdint>

namespace dlprim {

/// While it lives, count() of the calling thread does nothing: what the thread does is not the
/// program's work. Other threads' events are counted.
class Uncounted {
  public:
    Uncounted() noexcept { ++depth_; }
    ~Uncounted() { --depth_; }
    Uncounted(const Uncounted&) = delete;
    Uncounted& operator=(const Uncounted&) = delete;
    static bool active() noexcept { return depth_ > 0; }

  private:
    inline static thread_local int depth_ = 0;
};

/// Counts events.
inline void count(std::uint64_t& counter, std::uint64_t amount = 1) noexcept {
    if (Uncounted::active()) return;
    std::atomic_ref<std::uint64_t>(counter).fetch_add(amount, std::memory_order_relaxed);
}
/// Adds to and takes from a number of what there is at present, also while events do not count.
inline void count_live(std::uint64_t& counter, std::uint64_t amount) noexcept {
    std::atomic_ref<std::uint64_t>(counter).fetch_add(amount, std::memory_order_relaxed);
}
inline void uncount(std::uint64_t& counter, std::uint64_t amount) noexcept {
    std::atomic_ref<std::uint64_t>(counter).fetch_sub(amount, std::memory_order_relaxed);
}
inline std::uint64_t counted(std::uint64_t& counter) noexcept {
    return std::atomic_ref<std::uint64_t>(counter).load(std::memory_order_relaxed);
}

}  // namespace dlprim
