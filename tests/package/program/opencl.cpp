// SPDX-License-Identifier: MIT
// A program outside the source tree that uses OpenCL itself. It opens a device, and enqueues its
// own kernels before and after a network of the library on one queue, without waits or copies
// between them.
#include <CL/cl.h>
#include <dlprim/dlprim.hpp>

#include <cstdlib>
#include <iostream>
#include <vector>

namespace {

const char* const network = R"({
    "inputs": [{"name": "x", "shape": [2, 4]}],
    "operators": [{"name": "relu", "type": "Activation", "inputs": ["x"], "outputs": ["y"],
                   "options": {"activation": "relu"}}],
    "outputs": ["y"]})";

const char* const kernels = R"(
kernel void ramp(global float* x, ulong offset) { x[offset + get_global_id(0)] = get_global_id(0) - 3.0f; }
kernel void twice(global const float* y, ulong offset, global float* z)
{
    z[get_global_id(0)] = 2 * y[offset + get_global_id(0)];
})";

void check(cl_int code, const char* what) {
    if (code == CL_SUCCESS) return;
    std::cerr << what << ": error " << code << '\n';
    std::exit(1);
}

struct Device {
    cl_device_id id = nullptr;
    cl_context context = nullptr;
    cl_command_queue queue = nullptr;
};

bool open(Device& device) {
    cl_platform_id platform = nullptr;
    cl_uint count = 0;
    if (clGetPlatformIDs(1, &platform, &count) != CL_SUCCESS || count == 0) return false;
    check(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device.id, nullptr), "clGetDeviceIDs");
    cl_int code = CL_SUCCESS;
    device.context = clCreateContext(nullptr, 1, &device.id, nullptr, nullptr, &code);
    check(code, "clCreateContext");
    device.queue = clCreateCommandQueue(device.context, device.id, 0, &code);
    check(code, "clCreateCommandQueue");
    return true;
}

cl_kernel kernel(cl_program program, const char* name) {
    cl_int code = CL_SUCCESS;
    const cl_kernel made = clCreateKernel(program, name, &code);
    check(code, name);
    return made;
}

void set(cl_kernel kernel, cl_uint first, const dp::opencl::Memory& place) {
    const cl_mem memory = place.memory;
    const cl_ulong offset = place.byte_offset / sizeof(float);
    check(clSetKernelArg(kernel, first, sizeof(memory), &memory), "clSetKernelArg");
    check(clSetKernelArg(kernel, first + 1, sizeof(offset), &offset), "clSetKernelArg");
}

}  // namespace

int main() {
    Device device;
    if (!open(device)) {
        std::cout << "no OpenCL platform\n";
        return 0;
    }
    cl_int code = CL_SUCCESS;
    const cl_program program = clCreateProgramWithSource(
        device.context, 1, const_cast<const char**>(&kernels), nullptr, &code);
    check(clBuildProgram(program, 1, &device.id, "", nullptr, nullptr), "clBuildProgram");
    const cl_kernel ramp = kernel(program, "ramp"), twice = kernel(program, "twice");
    const std::size_t size = 8;
    const cl_mem result =
        clCreateBuffer(device.context, CL_MEM_READ_WRITE, size * sizeof(float), nullptr, &code);
    check(code, "clCreateBuffer");

    const dp::Context context = dp::opencl::open(device.context, device.id, device.queue);
    dp::Net net = dp::Net::from_json(context, network);
    net.prepare();
    set(ramp, 0, dp::opencl::memory(net.input("x")));
    check(clSetKernelArg(twice, 2, sizeof(result), &result), "clSetKernelArg");

    const dp::Counters before = context.counters();
    check(
        clEnqueueNDRangeKernel(device.queue, ramp, 1, nullptr, &size, nullptr, 0, nullptr, nullptr),
        "ramp");
    net.forward();
    set(twice, 0, dp::opencl::memory(net.output("y")));
    check(clEnqueueNDRangeKernel(device.queue, twice, 1, nullptr, &size, nullptr, 0, nullptr,
                                 nullptr),
          "twice");
    const dp::Counters after = context.counters();

    std::vector<float> values(size);
    check(clEnqueueReadBuffer(device.queue, result, CL_TRUE, 0, size * sizeof(float), values.data(),
                              0, nullptr, nullptr),
          "clEnqueueReadBuffer");
    std::cout << after.waits - before.waits << " waits, " << after.allocations - before.allocations
              << " buffers:";
    for (const float value : values) std::cout << ' ' << value;
    std::cout << '\n';
    clReleaseMemObject(result);
    clReleaseKernel(ramp);
    clReleaseKernel(twice);
    clReleaseProgram(program);
    clReleaseCommandQueue(device.queue);
    clReleaseContext(device.context);
}
