// SPDX-License-Identifier: MIT
// A library for LD_PRELOAD that makes any OpenCL driver's compiler end its process over a prefetch,
// as Mesa's translator to SPIR-V does. With DLPRIM_TEST_FRAGILE_LAUNCH set, launches of kernels
// named "trial" and "deadly" end it, too, as zink's do.
#include <CL/cl.h>
#include <dlfcn.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>

#include <unistd.h>

extern "C" cl_program clCreateProgramWithSource(cl_context context, cl_uint count,
                                                const char** texts, const std::size_t* lengths,
                                                cl_int* code) {
    for (cl_uint i = 0; i < count; ++i)
        if (std::strstr(texts[i], "__builtin_prefetch") != nullptr &&
            std::strstr(texts[i], "NO_PREFETCH") == nullptr)
            ::_exit(8);
    const auto next = reinterpret_cast<decltype(&clCreateProgramWithSource)>(
        ::dlsym(RTLD_NEXT, "clCreateProgramWithSource"));
    return next(context, count, texts, lengths, code);
}

extern "C" cl_int clEnqueueNDRangeKernel(cl_command_queue queue, cl_kernel kernel,
                                         cl_uint dimensions, const std::size_t* offset,
                                         const std::size_t* global, const std::size_t* local,
                                         cl_uint count, const cl_event* events, cl_event* event) {
    char name[64] = {};
    if (std::getenv("DLPRIM_TEST_FRAGILE_LAUNCH") != nullptr &&
        clGetKernelInfo(kernel, CL_KERNEL_FUNCTION_NAME, sizeof(name) - 1, name, nullptr) ==
            CL_SUCCESS &&
        (std::strcmp(name, "trial") == 0 || std::strcmp(name, "deadly") == 0))
        ::_exit(139);
    const auto next = reinterpret_cast<decltype(&clEnqueueNDRangeKernel)>(
        ::dlsym(RTLD_NEXT, "clEnqueueNDRangeKernel"));
    return next(queue, kernel, dimensions, offset, global, local, count, events, event);
}
