// SPDX-License-Identifier: MIT
// Whether instructions that OpenCL C does not have itself run on a device and are right.
#pragma once

#include "runtime/context_impl.hpp"

#include <dlprim/dtype.hpp>

#include <cstdint>

namespace dlprim {

/// Each builds and runs a kernel of kernels/probe and compares what it writes with what is right.
/// Where that fails, the log says why, and the answer is that they are not there (false, 0). Waits
/// for the device.

/// Matrix instructions of a warpgroup on operands of f16 or bf16, and the conversion to that type,
/// by wgmma.cl.
bool wgmma_works(ContextImpl& context, DType operands);

/// The same of a warp, by mma.cl: the most bytes of local memory, of some that devices have and at
/// most `limit`, with which it runs and is right.
std::uint64_t mma_local_bytes(ContextImpl& context, std::uint64_t limit, DType operands);

/// Blocks and broadcasts of sub-groups of `lanes`, by subgroup.cl. Drivers that name the extension
/// may lack its functions (PoCL 5 does).
bool subgroups_work(ContextImpl& context, int lanes);

}  // namespace dlprim
