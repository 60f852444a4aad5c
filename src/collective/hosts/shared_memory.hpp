// SPDX-License-Identifier: MIT
// SharedMemory: memory of a process that other processes of the host map, too. It is a file without
// a name (memfd_create), which others open as /proc/PID/fd/N. So nothing is left when processes
// end, however they do, and the size of /dev/shm does not matter.
//
// Threads: one at a time.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace dlprim {

class SharedMemory {
  public:
    /// A mapped part of it, which lives as long as the pointer.
    using Part = std::shared_ptr<std::byte>;

    /// Makes an empty one. Throws Error(unsupported).
    SharedMemory();
    /// Opens that of another process. Throws Error(unsupported).
    SharedMemory(int process, int descriptor);
    ~SharedMemory();
    SharedMemory(const SharedMemory&) = delete;
    SharedMemory& operator=(const SharedMemory&) = delete;

    int descriptor() const { return descriptor_; }
    /// Makes the memory larger, and returns what it has got: zeros. Every call begins at a page,
    /// behind the one before. Throws Error(out_of_memory).
    Part grow(std::uint64_t bytes);
    /// The same part of a memory that another process has made larger by so many bytes: calls have
    /// the order of its own. Throws Error(device) where it is not that large.
    Part follow(std::uint64_t bytes);

  private:
    Part map(std::uint64_t bytes);

    int descriptor_ = -1;
    std::uint64_t size_ = 0;
};

/// A number in such memory, which its process lets grow from 0, and for which others wait (futex).
class SharedCounter {
  public:
    using Seconds = std::chrono::duration<double>;
    void set(std::uint32_t value);
    /// Waits until the number has come to `value`; it may be further. Numbers wrap around.
    /// `trouble` is called at once and after each interval, with how long that took so far. Throws
    /// Error(device) with its text, unless that is empty.
    void await(std::uint32_t value, std::chrono::nanoseconds interval,
               const std::function<std::string(Seconds waited)>& trouble) const;

  private:
    static_assert(std::atomic<std::uint32_t>::is_always_lock_free);
    std::atomic<std::uint32_t> value_;
};

}  // namespace dlprim
