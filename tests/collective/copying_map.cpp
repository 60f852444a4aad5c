// SPDX-License-Identifier: MIT
// A library for LD_PRELOAD that makes any OpenCL driver map memory of the host as NVIDIA's does: a
// mapping that is to be read copies the memory to the device and back. That takes a while here, and
// what another process has written meanwhile is lost. Each mapping of memory of the host is a line
// on stderr.
#include <CL/cl.h>
#include <dlfcn.h>

#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <thread>
#include <vector>

namespace {

template <typename Function>
Function* next(const char* name) {
    return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" void* clEnqueueMapBuffer(cl_command_queue queue, cl_mem memory, cl_bool blocking,
                                    cl_map_flags flags, std::size_t offset, std::size_t bytes,
                                    cl_uint count, const cl_event* events, cl_event* event,
                                    cl_int* code) {
    void* host = nullptr;
    clGetMemObjectInfo(memory, CL_MEM_HOST_PTR, sizeof(host), static_cast<void*>(&host), nullptr);
    std::vector<std::byte> before;
    if (host != nullptr) std::fprintf(stderr, "memory of the host is mapped\n");
    if (host != nullptr && (flags & CL_MAP_READ) != 0) {
        const auto* const begin = static_cast<const std::byte*>(host) + offset;
        before.assign(begin, begin + bytes);
        std::this_thread::sleep_for(std::chrono::milliseconds(300));
    }
    void* const mapped = next<decltype(clEnqueueMapBuffer)>("clEnqueueMapBuffer")(
        queue, memory, blocking, flags, offset, bytes, count, events, event, code);
    if (!before.empty()) std::memcpy(mapped, before.data(), before.size());
    return mapped;
}
