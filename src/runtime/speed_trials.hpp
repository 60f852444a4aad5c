// SPDX-License-Identifier: MIT
// What a driver is slow at and does not tell. Each is found by measuring kernels/probe/speed.cl in
// two ways, once: the binary cache keeps what came of it.
#pragma once

#include "runtime/cl.hpp"
#include "runtime/compile_target.hpp"
#include "runtime/program.hpp"

#include <functional>

namespace dlprim {

/// What a trial needs. The functions below wait for the device.
struct TrialDevice {
    const CompileTarget& target;
    cl_context context;
    cl_device_id device;
    /// Builds a program as it is. The trial releases it.
    std::function<cl_program(const ProgramSource&)> build;
    bool tries = true;  ///< whether kernels may run; otherwise only the cache is asked
};

/// Whether fma() of floats takes more than three times as long as mad(), because the device has no
/// instruction for it. A device that reports CL_FP_FMA has one. False if it is not known.
bool fma_is_slow(const TrialDevice& where);

/// Whether work-items with vectors of 16 floats that are alone in their work-group take more than
/// three times as long as groups of work-items with a float each: then work-items are the lanes of
/// the driver's vectors. It is not so where the driver tells that vectors are native to it. False
/// if it is not known.
bool vectors_are_slow(const TrialDevice& where);

}  // namespace dlprim
