// SPDX-License-Identifier: MIT
// KernelTurns.
#include "runtime/kernel_turns.hpp"

#include "base/text.hpp"
#include "runtime/pocl_cache.hpp"

namespace dlprim {

namespace {

constexpr int mended_in = 7;

bool is_same(const PartRange& a, const PartRange& b) {
    return a.dims == b.dims && a.global == b.global && a.local == b.local && a.offset == b.offset;
}

bool has_ended(cl_event event) {
    cl_int status = CL_QUEUED;
    return clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status), &status,
                          nullptr) == CL_SUCCESS &&
           status <= CL_COMPLETE;
}

}  // namespace

bool needs_kernel_turns(std::string_view platform_version) {
    if (!is_pocl(platform_version)) return false;
    // "OpenCL 3.0 PoCL 3.1+debian  Linux, ..."; early ones write their name in small letters.
    std::size_t at = platform_version.find("PoCL ");
    if (at == std::string_view::npos) at = platform_version.find("pocl ");
    if (at == std::string_view::npos) return true;
    return leading_number<int>(platform_version.substr(at + 5), 0) < mended_in;
}

KernelTurns& KernelTurns::of_process() {
    static auto* const turns = new KernelTurns;
    return *turns;
}

void KernelTurns::join(cl_command_queue queue) {
    const std::lock_guard lock(mutex_);
    if (queues_.size() == 1) {
        several_ = true;
        clFinish(*queues_.begin());
    }
    queues_.insert(queue);
}

void KernelTurns::leave(cl_command_queue queue) {
    const std::lock_guard lock(mutex_);
    if (const auto found = queues_.find(queue); found != queues_.end()) queues_.erase(found);
    several_ = queues_.size() > 1;
    for (auto& [kernel, launches] : kernels_) {
        const auto found = launches.find(queue);
        if (found == launches.end()) continue;
        clReleaseEvent(found->second.last);
        launches.erase(found);
    }
}

void KernelTurns::await_others(OfQueues& launches, cl_command_queue queue, const PartRange& range) {
    for (auto other = launches.begin(); other != launches.end();) {
        Launches& its = other->second;
        if (other->first == queue || (!its.differ && is_same(its.range, range))) {
            ++other;
            continue;
        }
        // An error is one of the other queue, which reports it.
        if (!has_ended(its.last)) clWaitForEvents(1, &its.last);
        clReleaseEvent(its.last);
        other = launches.erase(other);
    }
}

cl_int KernelTurns::take(const std::string& kernel, cl_command_queue queue, const PartRange& range,
                         const std::function<cl_int(cl_event*)>& enqueue, cl_event* event) {
    const std::lock_guard lock(mutex_);
    OfQueues& launches = kernels_[kernel];
    await_others(launches, queue, range);
    cl_event made = nullptr;
    const cl_int code = enqueue(&made);
    if (code != CL_SUCCESS) return code;
    Launches& own = launches[queue];
    if (own.last != nullptr) {
        own.differ = !has_ended(own.last) && (own.differ || !is_same(own.range, range));
        clReleaseEvent(own.last);
    }
    own.range = range;
    own.last = made;
    if (event != nullptr) {
        clRetainEvent(made);
        *event = made;
    }
    return code;
}

}  // namespace dlprim
