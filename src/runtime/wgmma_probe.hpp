// SPDX-License-Identifier: MIT
// Whether warpgroup matrix instructions run on a device and are right.
#pragma once

#include "runtime/context_impl.hpp"

namespace dlprim {

/// Builds and runs kernels/probe/wgmma.cl and compares its products with exact ones. False when
/// anything fails. Waits for the device.
bool wgmma_works(ContextImpl& context) noexcept;

}  // namespace dlprim
