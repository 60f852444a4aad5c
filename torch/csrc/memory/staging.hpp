// SPDX-License-Identifier: MIT
// Copies from and to the host that nobody waits for: a batch that goes to the device must not hold
// the program until the step before is done.
#pragma once

#include "common.hpp"

namespace dlprim_torch {

/// Copies row-major `values` of the CPU to `target`, which has as many bytes. Returns before the
/// device has read them. `own`: nobody else writes to the values' memory; otherwise, and where they
/// are few enough, they are copied on the host first. Large ones are waited for.
void copy_from_host(at::Tensor values, bool own, dp::Tensor& target, int device);

/// Copies row-major `values` in pinned memory to `target` and returns before the device has read
/// them, however many they are: the program leaves them as they are until then. False, with nothing
/// done, where the values are not pinned or the target has gaps.
bool copy_from_pinned(const at::Tensor& values, dp::Tensor& target, int device);
/// Likewise from `source` to `values`, which hold the elements when the device is done.
bool copy_to_pinned(const dp::Tensor& source, const at::Tensor& values, int device);

}  // namespace dlprim_torch
