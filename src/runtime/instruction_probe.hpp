// SPDX-License-Identifier: MIT
// Tests whether a device supports instructions that OpenCL C itself lacks, and computes them
// correctly.
#pragma once

#include "runtime/context_impl.hpp"

#include <dlprim/dtype.hpp>

#include <cstdint>

namespace dlprim {

/// Each function builds and runs a kernel of kernels/probe and compares its results with the
/// correct ones. If that fails, it logs why and reports that the instructions are missing (false,
/// 0). Waits for the device.

/// Warpgroup matrix instructions on operands of f16 or bf16, and the conversion to that type
/// (wgmma.cl).
bool wgmma_works(ContextImpl& context, DType operands);

/// The same for warp matrix instructions (mma.cl). Returns the most bytes of local memory with
/// which the kernel runs correctly. It tries some sizes that devices have, up to `limit`.
std::uint64_t mma_local_bytes(ContextImpl& context, std::uint64_t limit, DType operands);

/// Block reads and broadcasts of sub-groups of `lanes` (subgroup.cl). A driver may name the
/// extension and lack its functions (PoCL 5 does).
bool subgroups_work(ContextImpl& context, int lanes);

}  // namespace dlprim
