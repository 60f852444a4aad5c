// SPDX-License-Identifier: MIT
// fma() of floats is computed by integers, which takes many times as long as mad().
// Implementations: rusticl22 rusticl22-gpu rusticl25 rusticl25-gpu rusticl25-plain zink25
// The library: measures it, and calls mad() where no rounding is promised (src/runtime/speed_trials.hpp).
#include "opencl.h"

static double time_of(const char* options) {
    enum { items = 256 };
    float y[items] = {0};
    const cl_kernel kernel = make_kernel(
        "kernel void f(global float* y) {\n"
        "    float4 sum = y[get_global_id(0)], x = sum + 0.5f;\n"
        "    for (int i = 0; i < 16384; ++i) sum = CALL(sum, x, x);\n"
        "    y[get_global_id(0)] = sum.x + sum.y + sum.z + sum.w;\n"
        "}",
        options);
    const cl_mem buffer = set_buffer(kernel, 0, sizeof(y), y);
    double least = 1e9;
    for (int i = 0; i < 3; ++i) {
        const double start = seconds();
        launch(kernel, items, 1);
        read_buffer(buffer, sizeof(y), y);
        if (seconds() - start < least) least = seconds() - start;
    }
    return 1e3 * least;
}

int main(void) {
    open_device();
    const double fused = time_of("-DCALL=fma"), apart = time_of("-DCALL=mad");
    printf("fma() %.1f ms, mad() %.1f ms\n", fused, apart);
    return fused > 3 * apart;
}
