// SPDX-License-Identifier: MIT
// ContextImpl: an opened device as the rooms above use it: memory, a queue, compiled programs.
// There is one implementation for the host and for described devices (host_context.cpp), and one
// for OpenCL (opencl_context.cpp).
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

class ShardMeeting;

class ContextImpl {
  public:
    virtual ~ContextImpl() = default;

    const DeviceInfo& info() const noexcept { return info_; }
    const Traits& traits() const noexcept { return traits_; }
    bool is_host() const noexcept { return traits_.host; }
    /// Whether the device is described by a file (runtime/device_file.hpp): it runs no kernel.
    virtual bool is_described() const noexcept { return false; }
    /// Throws Error(unsupported) on a described device.
    void require_runs() const;
    Counters& counters() noexcept { return counters_; }

    /// What has failed on this device and why, by key (engine/disabled.hpp).
    struct Failures {
        std::mutex mutex;
        std::map<std::string, std::string> reasons;
    };
    Failures& failures() noexcept { return failures_; }

    /// Data that a higher room keeps for this device: the plans of eager calls.
    class Attachment {
      public:
        virtual ~Attachment() = default;
    };
    /// Returns the context's attachment, which `make` makes in the first call. Any thread may call
    /// it. It is destroyed with the last Context that a user holds, directly or in a tensor or net.
    /// It may hold memory of this context, and inner() handles, which do not count as users.
    Attachment& attachment(std::unique_ptr<Attachment> (*make)());
    /// A handle that does not keep the attachment alive, for use inside the attachment.
    Context inner() { return Access::handle<Context>(self()); }
    /// The pointer in a user's Context: `impl`, whose attachment is destroyed with the pointer's
    /// last copy.
    static std::shared_ptr<ContextImpl> for_users(std::shared_ptr<ContextImpl> impl);
    /// The same as a Context.
    static Context context_of(std::shared_ptr<ContextImpl> impl) {
        return Access::handle<Context>(for_users(std::move(impl)));
    }
    /// Where the shards of a batch meet whose values are added up in the middle of a part. nullptr
    /// unless a team computes with this context, in the thread that does.
    ShardMeeting* meeting() const noexcept { return meeting_; }
    void set_meeting(ShardMeeting* meeting) noexcept { meeting_ = meeting; }

    /// The shared pointer that owns this object.
    virtual std::shared_ptr<ContextImpl> self() = 0;

    /// Allocates device memory, aligned to traits().base_align_bytes. A request of 0 bytes gets a
    /// minimal buffer. It is memory of its own, for what lives long, such as a net's. If memory is
    /// short, the pool's is freed first. Throws Error(out_of_memory) with the requested bytes,
    /// those in use and those that were cached, the largest single allocation and the device's
    /// memory.
    virtual std::shared_ptr<Buffer> allocate(std::uint64_t bytes) = 0;
    /// The same from a pool (runtime/block_pool.hpp), for tensors and eager calls: the second call
    /// with a shape must not allocate. Memory returns to the pool when its last user releases it,
    /// also if the device is still using it: the queue is in order, so that later work finds it
    /// unused. Memory that a program holds by a reference of its own returns when that is released.
    virtual std::shared_ptr<Buffer> allocate_cached(std::uint64_t bytes) = 0;
    /// Frees the pool's unused memory. Waits for all work. Returns the bytes that were unused.
    virtual std::uint64_t trim() = 0;
    virtual MemoryUse memory() = 0;
    virtual void reset_memory_peaks() = 0;
    /// Wraps a foreign cl_mem (retained) or host pointer (not owned).
    virtual std::shared_ptr<Buffer> wrap(void* handle, std::uint64_t bytes) = 0;

    virtual Queue& queue() = 0;

    /// Compiles the program, or takes it from memory or from the disk cache
    /// (runtime/binary_cache.hpp). Under BuildsLater it is compiled later. Throws Error(build),
    /// which names the file of the compiler's log. Never called during a step. Not supported on the
    /// host.
    virtual std::shared_ptr<Program> build(const ProgramSource& source) = 0;

    /// The host's threads. Every context has them, for conversions and for loading weights.
    virtual HostPool& pool() = 0;

    /// The cl_context, cl_device_id and cl_command_queue, for interoperation; nullptr on the host.
    virtual void* cl_context_handle() const { return nullptr; }
    virtual void* cl_device_handle() const { return nullptr; }
    virtual void* cl_queue_handle() const { return nullptr; }

    struct EventOptions {
        bool timed = false;  ///< whether its time will be asked for
        bool looks = false;  ///< whether waiting for it reports refusals (runtime/refusals.hpp)
    };
    /// A point behind all enqueued work. Flushes the queue.
    virtual std::shared_ptr<EventImpl> record(EventOptions options) = 0;
    /// Host memory for fast copies, which keeps the device open.
    virtual std::shared_ptr<std::byte> make_pinned(std::uint64_t bytes) = 0;

    /// Makes a feed for `bytes` bytes of a buffer, which the feed keeps alive.
    virtual std::unique_ptr<InputFeed> make_feed(std::shared_ptr<Buffer> to,
                                                 std::uint64_t byte_offset,
                                                 std::uint64_t bytes) = 0;
    /// Makes a reader for `bytes` bytes each.
    virtual std::unique_ptr<Readback> make_readback(std::uint64_t bytes) = 0;

  protected:
    DeviceInfo info_;
    Traits traits_;
    Counters counters_;

  private:
    Failures failures_;
    ShardMeeting* meeting_ = nullptr;
    std::mutex attachment_mutex_;
    std::unique_ptr<Attachment> attachment_;
};

}  // namespace dlprim
