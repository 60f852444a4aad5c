// SPDX-License-Identifier: MIT
// ContextImpl: what an opened device offers to the rooms below: memory, a queue, compiled programs.
// One implementation for the host (host_context.cpp), one for OpenCL (opencl_context.cpp).
#pragma once

#include "runtime/access.hpp"
#include "runtime/buffer.hpp"
#include "runtime/host_pool.hpp"
#include "runtime/program.hpp"
#include "runtime/queue.hpp"
#include "runtime/transfer.hpp"

#include <dlprim/context.hpp>

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

namespace dlprim {

class ContextImpl {
  public:
    virtual ~ContextImpl() = default;

    const DeviceInfo& info() const noexcept { return info_; }
    const Traits& traits() const noexcept { return traits_; }
    bool is_host() const noexcept { return traits_.host; }
    Counters& counters() noexcept { return counters_; }

    /// What has failed on this device, by what it was, and why (engine/disabled.hpp).
    struct Failures {
        std::mutex mutex;
        std::map<std::string, std::string> reasons;
    };
    Failures& failures() noexcept { return failures_; }

    /// What a room below keeps for this device: the plans of eager calls.
    class Attachment {
      public:
        virtual ~Attachment() = default;
    };
    /// The context's attachment, made by `make` at the first call; from any thread. It goes with
    /// the last Context that a user holds, directly or in a tensor or net, and may itself hold
    /// memory of this context and inner() handles, which do not count as users.
    Attachment& attachment(std::unique_ptr<Attachment> (*make)());
    /// A handle that does not keep the attachment: for what lies in it.
    Context inner() { return Access::handle<Context>(self()); }
    /// What a user's Context holds: `impl`, whose attachment goes with its last copy.
    static std::shared_ptr<ContextImpl> for_users(std::shared_ptr<ContextImpl> impl);
    /// The same as a Context.
    static Context context_of(std::shared_ptr<ContextImpl> impl) {
        return Access::handle<Context>(for_users(std::move(impl)));
    }
    /// The owner of this object.
    virtual std::shared_ptr<ContextImpl> self() = 0;

    /// New device memory, aligned to traits().base_align_bytes; a request of 0 bytes gets a minimal
    /// buffer. Throws Error(out_of_memory) with bytes asked for, the largest single allocation and
    /// the device's memory.
    virtual std::shared_ptr<Buffer> allocate(std::uint64_t bytes) = 0;
    /// The same out of a pool that keeps freed buffers by size class: for eager calls, whose second
    /// call of a shape must not allocate. Memory goes back to the pool when the last user lets go;
    /// safe because the queue is in order.
    virtual std::shared_ptr<Buffer> allocate_cached(std::uint64_t bytes) = 0;
    /// Lets the pool's unused memory go.
    virtual void trim() = 0;
    /// Wraps a foreign cl_mem (retained) or host pointer (not owned).
    virtual std::shared_ptr<Buffer> wrap(void* handle, std::uint64_t bytes) = 0;

    virtual Queue& queue() = 0;

    /// Compiles, or takes from the memory or disk cache (runtime/binary_cache.hpp); later under
    /// BuildsLater. Throws
    /// Error(build) whose message names the file that holds the log. Never called inside a step.
    /// Not on the host.
    virtual std::shared_ptr<Program> build(const ProgramSource& source) = 0;

    /// The host's threads (every context has them: conversions and weight loading use them).
    virtual HostPool& pool() = 0;

    /// The cl_context, cl_device_id and cl_command_queue, for interoperation; nullptr on the host.
    virtual void* cl_context_handle() const { return nullptr; }
    virtual void* cl_device_handle() const { return nullptr; }
    virtual void* cl_queue_handle() const { return nullptr; }

    /// A feed of `bytes` of a buffer, which it keeps.
    virtual std::unique_ptr<InputFeed> make_feed(std::shared_ptr<Buffer> to,
                                                 std::uint64_t byte_offset,
                                                 std::uint64_t bytes) = 0;
    /// Reads of `bytes` each.
    virtual std::unique_ptr<Readback> make_readback(std::uint64_t bytes) = 0;

  protected:
    DeviceInfo info_;
    Traits traits_;
    Counters counters_;

  private:
    Failures failures_;
    std::mutex attachment_mutex_;
    std::unique_ptr<Attachment> attachment_;
};

}  // namespace dlprim
