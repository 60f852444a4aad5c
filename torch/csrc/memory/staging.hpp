// SPDX-License-Identifier: MIT
// Copies from the host that nobody waits for: a batch that goes to the device must not hold the
// program until the step before is done.
#pragma once

#include "common.hpp"

namespace dlprim_torch {

/// Copies row-major `values` of the CPU to `target`, which has as many bytes. Returns before the
/// device has read them. `own`: nobody else writes to the values' memory; otherwise, and where they
/// are few enough, they are copied on the host first. Large ones are waited for.
void copy_from_host(at::Tensor values, bool own, dp::Tensor& target, int device);

}  // namespace dlprim_torch
