// SPDX-License-Identifier: MIT
// A device that does not go on, as tests of what waits for it need one.
#pragma once

#include "runtime/cl.hpp"
#include "runtime/context_impl.hpp"
#include "support/catch.hpp"

namespace dlprim::testing {

/// Keeps what is enqueued to the queue of an OpenCL context from running while the object exists.
class HeldQueue {
  public:
    explicit HeldQueue(const Context& context) {
        const ContextImpl& impl = Access::impl(context);
        cl_int code = CL_SUCCESS;
        event_ = clCreateUserEvent(static_cast<cl_context>(impl.cl_context_handle()), &code);
        REQUIRE(code == CL_SUCCESS);
        REQUIRE(clEnqueueBarrierWithWaitList(static_cast<cl_command_queue>(impl.cl_queue_handle()),
                                             1, &event_, nullptr) == CL_SUCCESS);
    }
    ~HeldQueue() {
        clSetUserEventStatus(event_, CL_COMPLETE);
        clReleaseEvent(event_);
    }
    HeldQueue(const HeldQueue&) = delete;
    HeldQueue& operator=(const HeldQueue&) = delete;

  private:
    cl_event event_ = nullptr;
};

}  // namespace dlprim::testing
