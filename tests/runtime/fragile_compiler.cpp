// SPDX-License-Identifier: MIT
// A library for LD_PRELOAD that makes any OpenCL driver's compiler end its process over a prefetch,
// as Mesa's translator to SPIR-V does.
#include <CL/cl.h>
#include <dlfcn.h>

#include <cstddef>
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
