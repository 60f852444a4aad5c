// SPDX-License-Identifier: MIT
// Whether matrix instructions run on a device and are right.
#pragma once

#include "runtime/context_impl.hpp"

#include <cstdint>

namespace dlprim {

/// Those of a warpgroup: builds and runs kernels/probe/wgmma.cl and compares its products with
/// exact ones. False when anything fails. Waits for the device.
bool wgmma_works(ContextImpl& context) noexcept;

/// Those of a warp, by kernels/probe/mma.cl: the most bytes of local memory, of some that devices
/// have and at most `limit`, with which it runs and is right. 0 when it never is. Waits for the
/// device.
std::uint64_t mma_local_bytes(ContextImpl& context, std::uint64_t limit) noexcept;

}  // namespace dlprim
