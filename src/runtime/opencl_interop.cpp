// SPDX-License-Identifier: MIT
// dlprim/opencl.hpp: contexts on the program's handles, and handles of the library's objects.
#include <dlprim/opencl.hpp>

#include "base/text.hpp"
#include "runtime/buffer.hpp"
#include "runtime/cl.hpp"
#include "runtime/context_impl.hpp"
#include "runtime/devices.hpp"

#include <algorithm>
#include <vector>

namespace dlprim::opencl {
namespace {

ContextImpl& opencl_impl(const Context& context, std::string_view call) {
    ContextImpl& impl = Access::impl(context);
    if (impl.is_host())
        fail(ErrorKind::unsupported, "opencl::", call,
             "() needs a context of an OpenCL device, and this one is of the host");
    return impl;
}

template <typename Value>
Value of_queue(cl_command_queue queue, cl_command_queue_info what) {
    Value value{};
    cl_check(clGetCommandQueueInfo(queue, what, sizeof(value), &value, nullptr),
             "looking at the cl_command_queue that was given");
    return value;
}

bool holds(cl_context context, cl_device_id device) {
    std::size_t bytes = 0;
    const char* what = "looking at the cl_context that was given";
    cl_check(clGetContextInfo(context, CL_CONTEXT_DEVICES, 0, nullptr, &bytes), what);
    std::vector<cl_device_id> devices(bytes / sizeof(cl_device_id));
    cl_check(clGetContextInfo(context, CL_CONTEXT_DEVICES, bytes, devices.data(), nullptr), what);
    return std::find(devices.begin(), devices.end(), device) != devices.end();
}

}  // namespace

Context open(_cl_context* context, _cl_device_id* device, _cl_command_queue* queue) {
    require(context != nullptr && device != nullptr && queue != nullptr,
            "opencl::open() needs a cl_context, a cl_device_id and a cl_command_queue, and one of "
            "them is null");
    require(holds(context, device), "the cl_context given does not hold the cl_device_id given");
    require(of_queue<cl_context>(queue, CL_QUEUE_CONTEXT) == context,
            "the cl_command_queue given belongs to another cl_context than the one given");
    require(of_queue<cl_device_id>(queue, CL_QUEUE_DEVICE) == device,
            "the cl_command_queue given belongs to another device than the one given");
    const auto properties = of_queue<cl_command_queue_properties>(queue, CL_QUEUE_PROPERTIES);
    require((properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE) == 0,
            "the cl_command_queue given runs out of order, and the library relies on order: give "
            "one without CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE");
    return ContextImpl::context_of(
        make_opencl_context(opencl_device_of(device), OpenCLObjects{context, queue}));
}

Handles handles(const Context& context) {
    const ContextImpl& impl = opencl_impl(context, "handles");
    const auto queue = static_cast<cl_command_queue>(impl.cl_queue_handle());
    return {static_cast<cl_context>(impl.cl_context_handle()),
            static_cast<cl_device_id>(impl.cl_device_handle()), queue};
}

Memory memory(const Tensor& tensor) {
    opencl_impl(tensor.context(), "memory");
    Buffer& buffer = *Access::buffer(tensor);
    buffer.set_foreign();
    return {static_cast<cl_mem>(buffer.handle()), buffer.offset() + tensor.byte_offset()};
}

_cl_event* enqueued_event(const Context& context) {
    ContextImpl& impl = opencl_impl(context, "enqueued_event");
    cl_event event = nullptr;
    cl_check(clEnqueueMarkerWithWaitList(static_cast<cl_command_queue>(impl.cl_queue_handle()), 0,
                                         nullptr, &event),
             "enqueueing a marker");
    impl.queue().flush();
    return event;
}

void wait_for_event(const Context& context, _cl_event* event) {
    const ContextImpl& impl = opencl_impl(context, "wait_for_event");
    require(event != nullptr, "opencl::wait_for_event() needs an event, and it is null");
    cl_context owner = nullptr;
    cl_check(clGetEventInfo(event, CL_EVENT_CONTEXT, sizeof(owner), &owner, nullptr),
             "looking at the cl_event that was given");
    require(owner == impl.cl_context_handle(),
            "the cl_event given belongs to another cl_context than the context's");
    cl_check(clEnqueueBarrierWithWaitList(static_cast<cl_command_queue>(impl.cl_queue_handle()), 1,
                                          &event, nullptr),
             "enqueueing a barrier");
}

}  // namespace dlprim::opencl
