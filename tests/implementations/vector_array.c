// SPDX-License-Identifier: MIT
// A loop over an array of vectors ends the process at the launch: vkCreateComputePipelines fails (VK_ERROR_UNKNOWN), and the
// pipeline that there is not is used (SIGSEGV). Without the array, or without the loop, it works.
// Implementations: rusticl25 zink25
// The library: nothing; kernels have such arrays for their tiles. dlprim_doctor names what ends its processes.
#include "opencl.h"

int main(void) {
    float y[64] = {0};
    open_device();
    const cl_kernel kernel = make_kernel(
        "kernel void f(global float* y) {\n"
        "    float4 sums[2];\n"
        "    for (int i = 0; i < 2; ++i) sums[i] = y[get_global_id(0)] + i;\n"
        "    for (int i = 0; i < 2; ++i) sums[i] = sums[i] + 1.0f;\n"
        "    y[get_global_id(0)] = sums[0].x + sums[1].y;\n"
        "}",
        "");
    const cl_mem buffer = set_buffer(kernel, 0, sizeof(y), y);
    launch(kernel, 64, 16);
    read_buffer(buffer, sizeof(y), y);
    printf("%g, which should be 3\n", y[0]);
    return y[0] != 3;
}
