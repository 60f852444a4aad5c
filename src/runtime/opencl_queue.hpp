// SPDX-License-Identifier: MIT
// The in-order queue of an OpenCL context, and a second queue for the transfer of inputs.
#pragma once

#include "runtime/cl.hpp"
#include "runtime/opencl_refusals.hpp"
#include "runtime/queue.hpp"

#include <dlprim/context.hpp>

#include <atomic>
#include <cstdint>
#include <utility>

namespace dlprim {

class OpenCLQueue : public Queue {
  public:
    /// Uses the queue `given`, which it retains, or makes a new one if that is null.
    OpenCLQueue(cl_context context, cl_device_id device, Counters& counters,
                cl_command_queue given = nullptr);
    ~OpenCLQueue() override;

    void launch(Kernel& kernel, const NDRange& range) override;
    void run(const std::function<void(HostPool&)>& work) override;
    void write(const BufferRef& to, const void* from, std::uint64_t bytes, bool blocking) override;
    void read(const BufferRef& from, void* to, std::uint64_t bytes, bool blocking) override;
    void copy(const BufferRef& from, const BufferRef& to, std::uint64_t bytes) override;
    void fill(const BufferRef& to, std::uint64_t bytes, const void* pattern,
              std::size_t pattern_bytes) override;
    void flush() override;
    void finish() override;
    OpenCLRefusals* refusals() noexcept override { return &refusals_; }
    void set_profiling(bool on) override;
    std::vector<ProfileRecord> take_profile() override;

    /// finish() that neither counts nor throws, for the end of the process.
    void drain() noexcept;
    cl_command_queue handle() const { return current_; }
    /// A second queue. Its work runs in parallel with this queue's, except where events order it
    /// (runtime/opencl_transfer.hpp).
    cl_command_queue transfers();
    /// Increases whenever all enqueued work has been flushed to the device.
    std::uint64_t handed_over() const noexcept { return handed_over_.load(); }

  private:
    cl_command_queue make(cl_command_queue_properties properties) const;
    void collect();

    cl_context context_;
    cl_device_id device_;
    Counters& counters_;
    OpenCLRefusals refusals_;
    cl_command_queue plain_ = nullptr;
    cl_command_queue profiled_ = nullptr;  ///< made when profiling is turned on first
    cl_command_queue current_ = nullptr;
    cl_command_queue transfers_ = nullptr;       ///< made on first use
    std::atomic<std::uint64_t> handed_over_{0};  ///< threads that make eager calls change it too
    std::vector<std::pair<int, cl_event>> pending_;
    std::vector<ProfileRecord> records_;
};

}  // namespace dlprim
