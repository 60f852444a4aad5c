// SPDX-License-Identifier: MIT
// LaunchThread: a thread of an OpenCL context that enqueues what others have recorded.
//
// A driver of a GPU takes 5 to 20 us to set a kernel's arguments and to enqueue it. Where eager
// calls bound a program, the caller records its launches here and goes on to the next call, while
// this thread calls the driver. Records are carried out in the order in which they were made.
// Whoever needs the driver's queue calls settle() first, after which it holds all that was
// recorded.
#pragma once

#include "runtime/cl.hpp"
#include "runtime/launches_later.hpp"
#include "runtime/split_launch.hpp"

#include <dlprim/error.hpp>

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace dlprim {

class OpenCLKernel;

/// Any thread may call any member.
class LaunchThread {
  public:
    /// Enqueues to `queue`, which outlives this object.
    explicit LaunchThread(cl_command_queue queue);
    /// Carries out what was recorded.
    ~LaunchThread();
    LaunchThread(const LaunchThread&) = delete;
    LaunchThread& operator=(const LaunchThread&) = delete;

    /// Records a launch of the kernel with the arguments that were set since its last one. Waits
    /// only where thousands of records are ahead of this one.
    void launch(OpenCLKernel& kernel, const PartRange& range);
    void fill(cl_mem to, std::uint64_t offset, std::uint64_t bytes, const void* pattern,
              std::size_t pattern_bytes);
    void copy(cl_mem from, std::uint64_t from_offset, cl_mem to, std::uint64_t to_offset,
              std::uint64_t bytes);
    /// Hands what was recorded before it to the device, soon: records that follow at once go along.
    void flush();
    /// Releases the memory behind all that was recorded, or at once if nothing is waiting.
    void release(cl_mem memory);

    /// Waits until everything that was recorded before the call is in the driver's queue.
    void settle() noexcept;
    /// Throws the first error of a record since the last call, if there is one.
    void rethrow();
    /// How often the queue was flushed.
    std::uint64_t flushes() const noexcept { return flushes_.load(); }
    /// How many launches it has carried out, failed ones among them.
    std::uint64_t launches() const noexcept { return launches_.load(); }

  private:
    enum class Kind : std::uint8_t { launch, fill, copy, flush, release, stop };
    struct Record {
        Kind kind = Kind::flush;
        std::string owner;  ///< the operator's name, for errors
        OpenCLKernel* kernel = nullptr;
        PartRange range;
        std::vector<std::byte> bytes;  ///< arguments of a kernel, or a pattern
        cl_mem from = nullptr, to = nullptr;
        std::uint64_t from_offset = 0, to_offset = 0, size = 0;
    };

    template <typename Fill>
    void push(Kind kind, const Fill& fill_in);
    void work();
    void carry_out(Record& record);
    void flush_now();
    void keep(const Error& error);

    cl_command_queue queue_;
    std::vector<Record> ring_;
    std::mutex push_mutex_;
    std::atomic<std::uint64_t> pushed_{0}, done_{0};
    std::atomic<std::uint64_t> flushes_{0}, launches_{0};
    std::uint64_t unflushed_ = 0;  ///< launches since the last flush
    bool flush_wanted_ = false;
    std::atomic<bool> failed_{false};
    std::mutex error_mutex_;
    std::exception_ptr error_;
    std::thread thread_;
};

}  // namespace dlprim
