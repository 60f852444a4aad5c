// SPDX-License-Identifier: MIT
// Whether a driver emulates fma(). OpenCL makes all devices have it, and those without an
// instruction for it compute it by integers, which takes many times as long as mad().
#pragma once

#include "runtime/cl.hpp"
#include "runtime/compile_target.hpp"
#include "runtime/program.hpp"

#include <functional>

namespace dlprim {

/// Whether fma() of floats takes more than three times as long as mad(). A device that reports
/// CL_FP_FMA has the instruction. On others kernels/probe/peak.cl is measured with both, once: the
/// target's cache keeps what came of it. If `tries` is false, only the cache is asked.
/// Returns false if it is not known. Waits for the device.
/// `build` builds a program as it is; this function releases it.
bool fma_is_slow(const CompileTarget& target, cl_context context, cl_device_id device,
                 const std::function<cl_program(const ProgramSource&)>& build, bool tries);

}  // namespace dlprim
