// SPDX-License-Identifier: MIT
// A core of its own for each thread of a processor's OpenCL runtime.
#pragma once

#include "runtime/cl.hpp"

namespace dlprim {

/// Binds the threads that run kernels to one processor each of those that the caller may run on,
/// where they are as many; otherwise, or where they cannot be told, nothing changes. Done once a
/// device and process. DLPRIM_AFFINITY=0 leaves them alone. Returns whether all are bound.
///
/// Why: a launch wakes the runtime's threads while the caller still runs. On two cores that is
/// three threads, and the system may put both of the runtime's on one core, where one of them waits
/// for the other's time slice to end, milliseconds, while the other core is idle from the moment
/// that the caller sleeps. Batches of small networks then take twice as long.
///
/// How: by native kernels (an optional part of OpenCL), which runtimes run in those threads; as
/// many at once as there are compute units, so that each thread gets one. Only Linux.
bool bind_runtime_threads(cl_context context, cl_device_id device) noexcept;

}  // namespace dlprim
