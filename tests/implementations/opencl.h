// SPDX-License-Identifier: MIT
// What the reproductions share: a device, a kernel, and buffers of n floats x and y. Each reproduction is a C program that
// needs OpenCL alone, so that it can be sent to those who make the implementation. Its exit code is 0 where the implementation
// does right.
#pragma once
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static cl_device_id device;
static cl_context context;
static cl_command_queue queue;

static void check(cl_int code, const char* what) {
    if (code == CL_SUCCESS) return;
    printf("%s fails: %d\n", what, code);
    exit(3);
}

static inline void open_device(void) {
    cl_platform_id platform;
    cl_int code;
    check(clGetPlatformIDs(1, &platform, NULL), "clGetPlatformIDs");
    check(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL), "clGetDeviceIDs");
    context = clCreateContext(NULL, 1, &device, NULL, NULL, &code);
    check(code, "clCreateContext");
    queue = clCreateCommandQueue(context, device, 0, &code);
    check(code, "clCreateCommandQueue");
}

/// The kernel "f" of the text.
static inline cl_kernel make_kernel(const char* text, const char* options) {
    cl_int code;
    const cl_program program = clCreateProgramWithSource(context, 1, &text, NULL, &code);
    check(code, "clCreateProgramWithSource");
    check(clBuildProgram(program, 1, &device, options, NULL, NULL), "clBuildProgram");
    const cl_kernel kernel = clCreateKernel(program, "f", &code);
    check(code, "clCreateKernel");
    return kernel;
}

/// A buffer with a copy of `bytes` bytes, as an argument of the kernel.
static inline cl_mem set_buffer(cl_kernel kernel, cl_uint index, size_t bytes, void* from) {
    cl_int code;
    const cl_mem buffer = clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, bytes, from, &code);
    check(code, "clCreateBuffer");
    check(clSetKernelArg(kernel, index, sizeof(buffer), &buffer), "clSetKernelArg");
    return buffer;
}

static inline void launch(cl_kernel kernel, size_t items, size_t group) {
    check(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, group ? &group : NULL, 0, NULL, NULL), "clEnqueueNDRangeKernel");
}

static inline void read_buffer(cl_mem buffer, size_t bytes, void* to) {
    check(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, bytes, to, 0, NULL, NULL), "clEnqueueReadBuffer");
}

static inline double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}
