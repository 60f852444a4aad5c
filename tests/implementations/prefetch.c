// SPDX-License-Identifier: MIT
// The translator from LLVM to SPIR-V ends the process with exit code 8 over Clang's __builtin_prefetch, in place of an error
// of clBuildProgram ("InvalidFunctionCall: Unexpected llvm intrinsic").
// Implementations: rusticl22 rusticl22-gpu rusticl25 rusticl25-gpu rusticl25-plain zink25
// The library: tries it in a process of its own, and leaves prefetches out (src/runtime/compiler_survey.hpp).
#include "opencl.h"

int main(void) {
    open_device();
    make_kernel("kernel void f(global float* x) { __builtin_prefetch((const void*)(size_t)(x + 64)); x[0] = 1; }", "");
    puts("compiles");
    return 0;
}
