// SPDX-License-Identifier: MIT
// The in-order queue of an OpenCL context, and a second queue for the transfer of inputs.
#pragma once

#include "runtime/cl.hpp"
#include "runtime/launch_thread.hpp"
#include "runtime/opencl_refusals.hpp"
#include "runtime/put_off_calls.hpp"
#include "runtime/queue.hpp"

#include <dlprim/context.hpp>

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

namespace dlprim {

class OpenCLQueue : public Queue {
  public:
    /// Uses the queue `given`, which it retains, or makes a new one if that is null.
    OpenCLQueue(cl_context context, cl_device_id device, Counters& counters,
                cl_command_queue given = nullptr);
    /// Starts a thread for what callers leave to it (LaunchesLater).
    void start_thread() {
        if (!waits_) thread_ = std::make_unique<LaunchThread>(plain_);
    }
    /// The thread, or nullptr. It lives as long as this object.
    LaunchThread* thread() const noexcept { return thread_.get(); }
    /// Waits for each command (DLPRIM_SYNC), so that the error of a kernel names it. Called before
    /// start_thread(), which then starts none.
    void wait_for_each() noexcept { waits_ = true; }
    /// Says how calls are put off; `crew` is asked at the first one. Called before start_thread().
    void set_crew(std::function<std::optional<CompileCrew>()> crew) { crew_ = std::move(crew); }
    /// put_off_calls().
    PutOffCalls* put_off();
    /// Waits until all that callers have left to threads is in the driver's queue.
    void settle() const noexcept {
        if (thread_) thread_->settle();
        if (PutOffCalls* const calls = put_off_.load()) calls->settle();
    }
    /// Blocking reads and writes of at least so many bytes map the memory, which the host shares,
    /// and copy it by the host's threads. Called before the first of them.
    void map_from(std::uint64_t bytes) noexcept { map_from_ = bytes; }
    /// launch_limit(). Set before the first program is built.
    double launch_limit() const noexcept { return launch_limit_; }
    void limit_launches(double seconds) noexcept { launch_limit_ = seconds; }
    /// Takes turns with others (KernelTurns). Called before the first launch.
    void take_turns();
    /// From now on callers enqueue themselves, because somebody else enqueues to the queue, too.
    void stop_recording() noexcept;
    ~OpenCLQueue() override;

    void launch(Kernel& kernel, const NDRange& range) override;
    void run(const std::function<void(HostPool&)>& work) override;
    void enqueue_otherwise(const std::function<void(void*)>& work) override;
    void write(const BufferRef& to, const void* from, std::uint64_t bytes, bool blocking) override;
    void read(const BufferRef& from, void* to, std::uint64_t bytes, bool blocking) override;
    void copy(const BufferRef& from, const BufferRef& to, std::uint64_t bytes) override;
    void fill(const BufferRef& to, std::uint64_t bytes, const void* pattern,
              std::size_t pattern_bytes) override;
    void flush() override;
    void finish() override;
    void throw_later(const std::exception_ptr& error) override;
    std::uint64_t launched_by_thread() const noexcept override {
        return thread_ ? thread_->launches() : 0;
    }
    OpenCLRefusals* refusals() noexcept override { return &refusals_; }
    void set_profiling(bool on) override;
    std::vector<ProfileRecord> take_profile() override;

    /// finish() that neither counts nor throws, for the end of the process.
    void drain() noexcept;
    /// The driver's queue, which holds all that was enqueued before the call.
    cl_command_queue handle() const noexcept {
        settle();
        return current_;
    }
    /// Throws what failed on the thread since the last call of this, or what throw_later() was
    /// given, if there is something.
    void rethrow();
    /// A second queue. Its work runs in parallel with this queue's, except where events order it
    /// (runtime/opencl_transfer.hpp).
    cl_command_queue transfers();
    /// Increases whenever all enqueued work has been flushed to the device.
    std::uint64_t handed_over() const noexcept {
        return handed_over_.load() + (thread_ ? thread_->flushes() : 0);
    }

  private:
    /// settle() for callers that wait for the device.
    void wait_for_calls() {
        if (PutOffCalls* const calls = put_off_.load()) calls->wait();
    }
    /// The thread, if the caller leaves its launches to it.
    LaunchThread* recorder() const noexcept {
        return LaunchesLater::wanted() && recording_.load(std::memory_order_relaxed) ? thread_.get()
                                                                                     : nullptr;
    }
    cl_command_queue make(cl_command_queue_properties properties) const;
    /// Launches a range, or a part of it, at once.
    void launch_now(OpenCLKernel& kernel, const PartRange& range);
    /// Calls `copy` with the host's address of memory, and waits for what was enqueued before.
    template <typename Copy>
    void with_mapped(const BufferRef& at, std::uint64_t bytes, cl_map_flags flags,
                     const Copy& copy);
    void collect();
    /// Waits for what was enqueued, under wait_for_each(). `what` says what that is.
    template <typename... Parts>
    void wait_for(const Parts&... what) {
        if (waits_) [[unlikely]]
            cl_check(clFinish(current_), what...);
    }

    cl_context context_;
    cl_device_id device_;
    Counters& counters_;
    OpenCLRefusals refusals_;
    std::unique_ptr<LaunchThread> thread_;
    std::function<std::optional<CompileCrew>()> crew_;
    std::once_flag asked_crew_;
    std::atomic<PutOffCalls*> put_off_{nullptr};  ///< owned, made when it is first wanted
    std::atomic<bool> recording_{true};  ///< not while profiling, nor once the queue was given out
    bool shared_ = false;                ///< whether it was
    bool waits_ = false;                 ///< for each command
    bool takes_turns_ = false;
    std::uint64_t map_from_ = ~std::uint64_t{0};
    double launch_limit_ = 0;
    cl_command_queue plain_ = nullptr;
    cl_command_queue profiled_ = nullptr;  ///< made when profiling is turned on first
    cl_command_queue current_ = nullptr;
    cl_command_queue transfers_ = nullptr;       ///< made on first use
    std::atomic<std::uint64_t> handed_over_{0};  ///< threads that make eager calls change it too
    std::mutex later_mutex_;
    std::exception_ptr later_;  ///< of throw_later(); the first counts
    std::atomic<bool> has_later_{false};
    struct Pending {
        int label;
        cl_event event;
        cl_event before;  ///< its end is the work's start; null where `event` has both
        void release() const {
            clReleaseEvent(event);
            if (before != nullptr) clReleaseEvent(before);
        }
    };
    std::vector<Pending> pending_;
    std::vector<ProfileRecord> records_;
};

}  // namespace dlprim
