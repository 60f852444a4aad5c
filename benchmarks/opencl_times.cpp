// SPDX-License-Identifier: MIT
// A library to preload that prints where a program's time goes in OpenCL: by kernels or by calls.
//
//     cmake --build build --target benchmark_opencl_times
//     TIMES=kernels LD_PRELOAD=build/tools/libbenchmark_opencl_times.so dlprim_generate ...
//     TIMES=calls   LD_PRELOAD=build/tools/libbenchmark_opencl_times.so dlprim_generate ...
//
// kernels: the device's time of each kernel, by its name and range, from profiling events. Each
// launch is waited for, so that a time holds all of a launch's costs and nothing overlaps.
// calls: how often the functions below were called, and the host's time in them.
//
// The tables go to stderr when the program ends, or to the file that TIMES_FILE names.
#define CL_TARGET_OPENCL_VERSION 120
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>

#include <dlfcn.h>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace {

/// OpenCL's own function of that name, which this library's stands in front of.
template <typename Function>
Function* original(const char* name) {
    static void* const library = dlopen("libOpenCL.so.1", RTLD_NOW);
    return library ? reinterpret_cast<Function*>(dlsym(library, name)) : nullptr;
}

class Times {
  public:
    ~Times() {
        const char* const path = std::getenv("TIMES_FILE");
        std::FILE* const file = path ? std::fopen(path, "w") : stderr;
        if (!file) return;
        std::vector<std::pair<std::string, Sum>> rows(sums_.begin(), sums_.end());
        std::sort(rows.begin(), rows.end(),
                  [](const auto& a, const auto& b) { return a.second.us > b.second.us; });
        for (const auto& [name, sum] : rows)
            std::fprintf(file, "%12.1f us %9ld x %10.2f us  %s\n", sum.us, sum.count,
                         sum.us / static_cast<double>(sum.count), name.c_str());
        if (path) std::fclose(file);
    }
    void add(const std::string& name, double us) {
        const std::lock_guard lock(mutex_);
        Sum& sum = sums_[name];
        sum.us += us;
        ++sum.count;
    }
    bool of_kernels() const { return what_ == "kernels"; }
    bool of_calls() const { return what_ == "calls"; }

  private:
    struct Sum {
        double us = 0;
        long count = 0;
    };
    const std::string_view what_ = std::getenv("TIMES") ? std::getenv("TIMES") : "";
    std::mutex mutex_;
    std::map<std::string, Sum> sums_;
};

Times& times() {
    static Times all;
    return all;
}

/// The result of a call, whose time counts.
template <typename Function, typename... Args>
auto timed(const char* name, Function* function, Args... args) {
    const auto start = std::chrono::steady_clock::now();
    auto result = function(args...);
    if (times().of_calls())
        times().add(name, std::chrono::duration<double, std::micro>(
                              std::chrono::steady_clock::now() - start)
                              .count());
    return result;
}

/// Calls OpenCL's own function.
#define CALL(name, ...)                                                \
    [&](auto... args) {                                                \
        static auto* const function = original<decltype(name)>(#name); \
        return timed(#name, function, args...);                        \
    }(__VA_ARGS__)

std::string name_of(cl_kernel kernel, cl_uint dims, const size_t* global) {
    char name[256] = {};
    CALL(clGetKernelInfo, kernel, cl_kernel_info{CL_KERNEL_FUNCTION_NAME}, sizeof(name) - 1,
         static_cast<void*>(name), static_cast<size_t*>(nullptr));
    std::string text = name;
    for (cl_uint i = 0; i < dims; ++i) text += (i ? " x " : "  ") + std::to_string(global[i]);
    return text;
}

/// Waits for a launch and adds its time.
void add_kernel(const std::string& name, cl_event event) {
    CALL(clWaitForEvents, cl_uint{1}, static_cast<const cl_event*>(&event));
    cl_ulong begin = 0, end = 0;
    for (const auto& [what, to] :
         {std::pair(CL_PROFILING_COMMAND_START, &begin), std::pair(CL_PROFILING_COMMAND_END, &end)})
        CALL(clGetEventProfilingInfo, event, static_cast<cl_profiling_info>(what), sizeof(cl_ulong),
             static_cast<void*>(to), static_cast<size_t*>(nullptr));
    times().add(name, static_cast<double>(end - begin) * 1e-3);
}

}  // namespace

extern "C" {

cl_command_queue clCreateCommandQueue(cl_context context, cl_device_id device,
                                      cl_command_queue_properties properties, cl_int* error) {
    if (times().of_kernels()) properties |= CL_QUEUE_PROFILING_ENABLE;
    return CALL(clCreateCommandQueue, context, device, properties, error);
}

cl_int clEnqueueNDRangeKernel(cl_command_queue queue, cl_kernel kernel, cl_uint dims,
                              const size_t* offset, const size_t* global, const size_t* local,
                              cl_uint count, const cl_event* before, cl_event* event) {
    cl_event own = nullptr;
    cl_event* const made = times().of_kernels() && !event ? &own : event;
    const cl_int code = CALL(clEnqueueNDRangeKernel, queue, kernel, dims, offset, global, local,
                             count, before, made);
    if (code == CL_SUCCESS && times().of_kernels())
        add_kernel(name_of(kernel, dims, global), *made);
    if (own) CALL(clReleaseEvent, own);
    return code;
}

cl_int clEnqueueWriteBuffer(cl_command_queue queue, cl_mem memory, cl_bool blocking, size_t offset,
                            size_t bytes, const void* from, cl_uint count, const cl_event* before,
                            cl_event* event) {
    return CALL(clEnqueueWriteBuffer, queue, memory, blocking, offset, bytes, from, count, before,
                event);
}

cl_int clEnqueueReadBuffer(cl_command_queue queue, cl_mem memory, cl_bool blocking, size_t offset,
                           size_t bytes, void* to, cl_uint count, const cl_event* before,
                           cl_event* event) {
    return CALL(clEnqueueReadBuffer, queue, memory, blocking, offset, bytes, to, count, before,
                event);
}

cl_int clEnqueueCopyBuffer(cl_command_queue queue, cl_mem from, cl_mem to, size_t from_offset,
                           size_t to_offset, size_t bytes, cl_uint count, const cl_event* before,
                           cl_event* event) {
    return CALL(clEnqueueCopyBuffer, queue, from, to, from_offset, to_offset, bytes, count, before,
                event);
}

cl_int clSetKernelArg(cl_kernel kernel, cl_uint index, size_t bytes, const void* value) {
    return CALL(clSetKernelArg, kernel, index, bytes, value);
}

cl_int clFlush(cl_command_queue queue) {
    return CALL(clFlush, queue);
}

cl_int clFinish(cl_command_queue queue) {
    return CALL(clFinish, queue);
}

cl_int clWaitForEvents(cl_uint count, const cl_event* events) {
    return CALL(clWaitForEvents, count, events);
}
}
