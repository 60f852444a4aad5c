// SPDX-License-Identifier: MIT
// OpenCL handles in both directions: dlprim/opencl.hpp.
#include "runtime/cl.hpp"
#include "runtime/context_impl.hpp"
#include "runtime/small_programs.hpp"
#include "support/catch.hpp"

#include <dlprim/dlprim.hpp>

using namespace dlprim;

namespace {

/// A cl_context and a queue that the test owns, on the device of one of the library's contexts.
struct Own {
    explicit Own(const Context& of, cl_command_queue_properties properties = 0)
        : device(opencl::handles(of).device) {
        cl_int code = CL_SUCCESS;
        context = clCreateContext(nullptr, 1, &device, nullptr, nullptr, &code);
        REQUIRE(code == CL_SUCCESS);
        queue = cl_make_queue(context, device, properties);
    }
    ~Own() {
        clReleaseCommandQueue(queue);
        clReleaseContext(context);
    }
    Own(const Own&) = delete;
    Own& operator=(const Own&) = delete;

    cl_device_id device;
    cl_context context = nullptr;
    cl_command_queue queue = nullptr;
};

std::string refusal(const std::function<void()>& call) {
    try {
        call();
    } catch (const Error& error) {
        return error.what();
    }
    return "";
}

bool holds(const std::string& text, const char* part) {
    return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("a context on handles of the program's") {
    for (const Context& known : opencl_contexts()) {
        INFO(known.info().name);
        const Own own(known);
        Tensor sum;
        {
            const Context context = opencl::open(own.context, own.device, own.queue);
            CHECK(context.info().id == known.info().id);
            CHECK(context.traits().compute_units == known.traits().compute_units);
            const opencl::Handles handles = opencl::handles(context);
            CHECK(handles.context == own.context);
            CHECK(handles.device == own.device);
            CHECK(handles.queue == own.queue);
            const Tensor x(context, {3}, std::vector<float>{1, 2, 3});
            sum = ops::add(x, x);
        }
        CHECK(sum.to_floats() == std::vector<float>{2, 4, 6});  // keeps its context alive
        // Another context on the same handles. Its tensors cannot be mixed with those of the first.
        const Context again = opencl::open(own.context, own.device, own.queue);
        const opencl::Memory place = opencl::memory(sum);
        const Tensor shared = Tensor::wrap_opencl(again, place.memory, place.byte_offset, {3});
        CHECK(ops::relu(shared).to_floats() == std::vector<float>{2, 4, 6});
        CHECK_THROWS_AS(ops::add(shared, sum), Error);
    }
}

TEST_CASE("memory that was handed out may be written by others") {
    for (const Context& context : opencl_contexts()) {
        INFO(context.info().name);
        const cl_command_queue queue = opencl::handles(context).queue;
        const Tensor x(context, {1, 2}, std::vector<float>{1, 1});
        const Tensor all(context, {2, 2}, std::vector<float>{9, 9, 1, 2});
        const Tensor weight = all.slice(0, 1, 2);
        const auto product = [&] {
            const std::string options = R"({"outputs": 1, "bias": false})";
            return ops::call("InnerProduct", options, {x}, {weight})[0].to_floats()[0];
        };
        CHECK(product() == 3);
        const opencl::Memory place = opencl::memory(weight);
        CHECK(place.byte_offset % context.traits().base_align_bytes == 8);
        const float changed[] = {10, 20};
        REQUIRE(clEnqueueWriteBuffer(queue, place.memory, CL_TRUE, place.byte_offset, 8, changed, 0,
                                     nullptr, nullptr) == CL_SUCCESS);
        CHECK(product() == 30);
    }
}

TEST_CASE("events order the library's work and the program's") {
    for (const Context& context : opencl_contexts()) {
        INFO(context.info().name);
        const opencl::Handles handles = opencl::handles(context);
        cl_int code = CL_SUCCESS;
        const cl_event gate = clCreateUserEvent(handles.context, &code);
        REQUIRE(code == CL_SUCCESS);
        const Tensor x(context, {2}, std::vector<float>{-1, 1});
        opencl::wait_for_event(context, gate);
        const Tensor y = ops::relu(x);
        const cl_event done = opencl::enqueued_event(context);
        cl_int state = CL_COMPLETE;
        CHECK(clGetEventInfo(done, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(state), &state,
                             nullptr) == CL_SUCCESS);
        CHECK(state != CL_COMPLETE);  // the gate is closed
        CHECK(clSetUserEventStatus(gate, CL_COMPLETE) == CL_SUCCESS);
        CHECK(clWaitForEvents(1, &done) == CL_SUCCESS);
        CHECK(y.to_floats() == std::vector<float>{0, 1});
        clReleaseEvent(done);
        clReleaseEvent(gate);
    }
}

TEST_CASE("handles that do not fit are refused") {
    const Context host("cpu");
    CHECK(holds(refusal([&] { opencl::handles(host); }), "this one is of the host"));
    CHECK(holds(refusal([&] { opencl::enqueued_event(host); }), "this one is of the host"));
    CHECK(holds(refusal([&] { opencl::memory(Tensor(host, {1})); }), "this one is of the host"));
    CHECK_THROWS_AS(opencl::memory(Tensor()), Error);
    CHECK(holds(refusal([] { opencl::open(nullptr, nullptr, nullptr); }), "one of them is null"));
    for (const Context& context : opencl_contexts()) {
        INFO(context.info().name);
        const Own own(context), other(context);
        CHECK(holds(refusal([&] { opencl::open(own.context, own.device, other.queue); }),
                    "belongs to another cl_context"));
        cl_command_queue_properties able = 0;
        clGetDeviceInfo(own.device, CL_DEVICE_QUEUE_PROPERTIES, sizeof(able), &able, nullptr);
        if ((able & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE) != 0) {
            const Own loose(context, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
            CHECK(holds(refusal([&] { opencl::open(loose.context, loose.device, loose.queue); }),
                        "runs out of order"));
        }
        CHECK_THROWS_AS(opencl::wait_for_event(context, nullptr), Error);
        cl_int code = CL_SUCCESS;
        const cl_event foreign = clCreateUserEvent(own.context, &code);
        CHECK(holds(refusal([&] { opencl::wait_for_event(context, foreign); }),
                    "belongs to another cl_context"));
        clReleaseEvent(foreign);
    }
}
