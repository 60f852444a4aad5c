// SPDX-License-Identifier: MIT
// An int below 0 that is converted to long is not below 0.
// Implementations: rusticl22 rusticl22-gpu rusticl25
// The library: asks the int (kernels/engine/indexing.clh).
#include "opencl.h"

int main(void) {
    cl_int x[64];
    cl_long y[64] = {0};
    int wrong = 0;
    open_device();
    for (int i = 0; i < 64; ++i) x[i] = i % 5 - 2;
    const cl_kernel kernel = make_kernel(
        "kernel void f(global const int* x, global long* y) {\n"
        "    const long number = (long)x[get_global_id(0)];\n"
        "    y[get_global_id(0)] = number < 0 ? 100 : number;\n"
        "}",
        "");
    set_buffer(kernel, 0, sizeof(x), x);
    const cl_mem buffer = set_buffer(kernel, 1, sizeof(y), y);
    launch(kernel, 64, 16);
    read_buffer(buffer, sizeof(y), y);
    for (int i = 0; i < 64; ++i) wrong += y[i] != (x[i] < 0 ? 100 : x[i]);
    printf("%d of 64 wrong\n", wrong);
    return wrong != 0;
}
