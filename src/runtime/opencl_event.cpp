// SPDX-License-Identifier: MIT
// OpenCLEvent. Most queues have no profiling, which makes some drivers slower. There the time of a
// marker is when the driver calls back.
#include "runtime/opencl_event.hpp"

#include "runtime/counting.hpp"
#include "runtime/opencl_program.hpp"
#include "runtime/opencl_refusals.hpp"

#include <atomic>
#include <chrono>
#include <thread>
#include <utility>

namespace dlprim {
namespace {

/// Written by the driver's thread, so it outlives the event.
struct Stamp {
    std::atomic<std::uint64_t> ns{0};
};

std::uint64_t now_ns() {
    return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                          std::chrono::steady_clock::now().time_since_epoch())
                                          .count());
}

void CL_CALLBACK stamp(cl_event, cl_int, void* given) {
    const std::unique_ptr<std::shared_ptr<Stamp>> kept(static_cast<std::shared_ptr<Stamp>*>(given));
    (*kept)->ns = now_ns();
}

void CL_CALLBACK drop_look(cl_event, cl_int, void* look) {
    delete static_cast<OpenCLRefusals::Look*>(look);
}

class OpenCLEvent : public EventImpl {
  public:
    OpenCLEvent(const TransferHome& home, ContextImpl::EventOptions options) : home_(home) {
        if (options.looks) {
            look_ = std::make_unique<OpenCLRefusals::Look>();
            home_.queue.refusals()->enqueue(home_.queue.handle(), *look_);
        }
        cl_check(clEnqueueMarkerWithWaitList(home_.queue.handle(), 0, nullptr, &event_),
                 "enqueueing a marker");
        if (options.timed) {
            stamp_ = std::make_shared<Stamp>();
            auto kept = std::make_unique<std::shared_ptr<Stamp>>(stamp_);
            const cl_int code = clSetEventCallback(event_, CL_COMPLETE, stamp, kept.get());
            if (code == CL_SUCCESS) static_cast<void>(kept.release());
            if (code != CL_SUCCESS) clReleaseEvent(event_);
            cl_check(code, "asking for the time of an event");
        }
        home_.queue.flush();
    }
    OpenCLEvent(const OpenCLEvent&) = delete;
    OpenCLEvent& operator=(const OpenCLEvent&) = delete;

    ~OpenCLEvent() override {
        if (opencl_gone()) return;
        if (look_ && look_->pending()) {
            // Nobody waited for this event: the notes are left to the next one that looks.
            home_.queue.refusals()->expect();
            if (clSetEventCallback(event_, CL_COMPLETE, drop_look, look_.get()) == CL_SUCCESS)
                static_cast<void>(look_.release());
            else
                clWaitForEvents(1, &event_);
        }
        clReleaseEvent(event_);
    }

    bool done() override {
        cl_int status = CL_QUEUED;
        cl_check(clGetEventInfo(event_, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status), &status,
                                nullptr),
                 "asking for an event's status");
        if (status < 0) cl_check(status, "the work in front of an event failed");
        return status == CL_COMPLETE;
    }

    void wait() override {
        if (!done()) {
            count(home_.context->counters().waits);
            cl_check(clWaitForEvents(1, &event_), "waiting for an event");
        }
        home_.queue.rethrow();
        const std::lock_guard lock(look_mutex_);
        if (look_) home_.queue.refusals()->check(home_.queue.handle(), *look_);
    }

    void order(ContextImpl& later) override {
        if (&later == home_.context.get()) return;
        if (later.cl_context_handle() != home_.handle) return wait();
        cl_check(clEnqueueBarrierWithWaitList(
                     static_cast<cl_command_queue>(later.cl_queue_handle()), 1, &event_, nullptr),
                 "enqueueing a barrier");
    }

    std::uint64_t time_ns() override {
        if (!stamp_) return 0;
        if (!done()) cl_check(clWaitForEvents(1, &event_), "waiting for an event");
        cl_ulong end = 0;
        if (clGetEventProfilingInfo(event_, CL_PROFILING_COMMAND_END, sizeof(end), &end, nullptr) ==
                CL_SUCCESS &&
            end != 0)
            return end;
        // Drivers may call back a little after others learn that the event is done.
        while (stamp_->ns == 0) std::this_thread::yield();
        return stamp_->ns;
    }

  private:
    TransferHome home_;
    cl_event event_ = nullptr;
    std::shared_ptr<Stamp> stamp_;
    std::mutex look_mutex_;
    std::unique_ptr<OpenCLRefusals::Look> look_;
};

}  // namespace

std::shared_ptr<EventImpl> record_opencl_event(const TransferHome& home,
                                               ContextImpl::EventOptions options) {
    return std::make_shared<OpenCLEvent>(home, options);
}

}  // namespace dlprim
