// SPDX-License-Identifier: MIT
// What a test asks of the CUDA driver in fake_cuda.cpp, which it loads as the library does.
#pragma once

/// Makes a call fail with a code from now on; 0: it works again.
extern "C" void fake_cuda_fail(const char* call, int code);
/// Whether devices reach each other's memory (they do).
extern "C" void fake_cuda_set_access(int yes);
/// Memory that was made and not released.
extern "C" int fake_cuda_memory();
