// SPDX-License-Identifier: MIT
// Binds each thread of a processor's OpenCL runtime to a core of its own.
#pragma once

#include "runtime/cl.hpp"

namespace dlprim {

/// Binds each thread that runs kernels to one of the processors that the caller may run on, if
/// there are as many threads as processors. Otherwise, or if the threads cannot be determined,
/// nothing changes. Done once per device and process. DLPRIM_AFFINITY=0 turns it off. Returns
/// whether all threads are bound.
///
/// Why: a launch wakes the runtime's threads while the caller still runs. On two cores that makes
/// three threads, and the system may put both threads of the runtime on one core. One of them then
/// waits milliseconds for the end of the other's time slice, although the other core is idle as
/// soon as the caller sleeps. Batches of small networks then take twice as long.
///
/// How: runtimes run native kernels (an optional part of OpenCL) in those threads. As many are
/// started at once as there are compute units, so that each thread gets one. Linux only.
bool bind_runtime_threads(cl_context context, cl_device_id device) noexcept;

}  // namespace dlprim
