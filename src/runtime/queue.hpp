// SPDX-License-Identifier: MIT
// Queue: an in-order queue of work on one device. On the host, work is finished when a call
// returns.
#pragma once

#include "runtime/buffer.hpp"
#include "runtime/program.hpp"

#include <cstdint>
#include <exception>
#include <functional>
#include <vector>

namespace dlprim {

class HostPool;
class Refusals;

/// One piece of profiled work.
struct ProfileRecord {
    int label = -1;  ///< as set by Queue::set_label
    std::uint64_t start_ns = 0;
    std::uint64_t end_ns = 0;
};

class Queue {
  public:
    virtual ~Queue() = default;

    /// Enqueues a kernel whose arguments are set. A range with a zero is skipped.
    virtual void launch(Kernel& kernel, const NDRange& range) = 0;
    /// Runs host work in order. Only the queue of the host device supports it.
    virtual void run(const std::function<void(HostPool&)>& work) = 0;
    /// Calls `work`, which enqueues to the cl_command_queue that it is given, in order. It counts
    /// as one launch, and is profiled as one. Not supported on the host.
    virtual void enqueue_otherwise(const std::function<void(void* cl_queue)>& work) = 0;

    virtual void write(const BufferRef& to, const void* from, std::uint64_t bytes,
                       bool blocking) = 0;
    virtual void read(const BufferRef& from, void* to, std::uint64_t bytes, bool blocking) = 0;
    virtual void copy(const BufferRef& from, const BufferRef& to, std::uint64_t bytes) = 0;
    /// Repeats a pattern of 1, 2, 4, 8, 16, 32, 64 or 128 bytes. The pattern is copied during the
    /// call, so this also serves for small uploads without a wait. Offset and size must be
    /// multiples of the pattern's size.
    virtual void fill(const BufferRef& to, std::uint64_t bytes, const void* pattern,
                      std::size_t pattern_bytes) = 0;

    /// Hands enqueued work to the device (counts as one flush).
    virtual void flush() = 0;
    /// Waits for all work (counts as one wait). It throws Error(invalid_argument), as a blocking
    /// read does, if a kernel has refused something since the last wait (runtime/refusals.hpp).
    virtual void finish() = 0;
    /// The next finish() or blocking read throws `error`, which somebody has caught whom it does
    /// not concern. Nothing on the host, where waits throw nothing.
    virtual void throw_later(const std::exception_ptr& error) { static_cast<void>(error); }

    /// How many launches a thread has enqueued in place of their callers, up to now
    /// (runtime/launch_thread.hpp). All that were recorded before finish() are counted after it.
    virtual std::uint64_t launched_by_thread() const noexcept { return 0; }

    /// Where kernels note what they refuse; nullptr on the host, where work itself throws.
    virtual Refusals* refusals() noexcept { return nullptr; }

    /// While profiling is on, every launch is recorded under the current label.
    virtual void set_profiling(bool on) = 0;
    void set_label(int label) noexcept { label_ = label; }
    /// Finishes the queue and returns the records since the previous call.
    virtual std::vector<ProfileRecord> take_profile() = 0;

  protected:
    int label_ = -1;
};

}  // namespace dlprim
