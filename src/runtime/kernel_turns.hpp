// SPDX-License-Identifier: MIT
// Kernels that several queues of a process launch on PoCL.
//
// PoCL keeps variants of a kernel for ranges of different widths. Up to version 6 it counts their
// uses, and takes a use back from whichever variant of the kernel it finds first. Where queues run
// variants of a kernel at the same time, a count goes below zero, which ends the process, or a
// variant is unloaded while it runs (mended in PoCL 7 by "fix dlhandle cache", 2024). So launches
// of a kernel with different ranges take turns there: one waits for those of other queues.
#pragma once

#include "runtime/cl.hpp"
#include "runtime/split_launch.hpp"

#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <string_view>

namespace dlprim {

/// Whether launches need them on a platform with this CL_PLATFORM_VERSION.
bool needs_kernel_turns(std::string_view platform_version);

/// Any thread may call its functions.
class KernelTurns {
  public:
    /// That of the process, which nothing destroys.
    static KernelTurns& of_process();

    /// A queue on such a platform begins to launch kernels. The second one waits for what the first
    /// has launched, since nobody has recorded that.
    void join(cl_command_queue queue);
    /// It is idle and about to end.
    void leave(cl_command_queue queue);
    /// Whether there are several.
    bool are_taken() const noexcept { return several_.load(std::memory_order_relaxed); }

    /// Calls `enqueue`, which launches the kernel on the queue and makes an event, once no other
    /// queue has a launch of the kernel with another range. Until then the calling thread waits,
    /// and so does every other one that calls this. `kernel` is the same text for the same kernel
    /// of the same program, in whatever context. `event` gets the event, unless it is null.
    cl_int take(const std::string& kernel, cl_command_queue queue, const PartRange& range,
                const std::function<cl_int(cl_event*)>& enqueue, cl_event* event);

  private:
    /// What a queue has launched and nobody has waited for.
    struct Launches {
        PartRange range;
        bool differ = false;  ///< whether some had other ranges
        cl_event last = nullptr;
    };
    using OfQueues = std::map<cl_command_queue, Launches>;
    void await_others(OfQueues& launches, cl_command_queue queue, const PartRange& range);

    std::atomic<bool> several_{false};
    std::mutex mutex_;
    std::multiset<cl_command_queue> queues_;  ///< several contexts may be given the same one
    std::map<std::string, OfQueues> kernels_;
};

}  // namespace dlprim
