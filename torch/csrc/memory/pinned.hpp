// SPDX-License-Identifier: MIT
// Pinned memory of the host, from which the driver copies without waiting: the allocator behind
// Tensor.pin_memory().
//
// Ownership: a tensor owns its block, and a copy that is not done shares it. A block that nobody
// owns any more is kept for the next tensor of its size until pinned_cache_go().
//
// Threads: everything here may be called by any thread.
#pragma once

#include "common.hpp"

#include <c10/core/Allocator.h>

#include <memory>

namespace dlprim_torch {

/// Allocates for the current device. A block has a power of two of bytes, at least 512. Throws
/// where there is no device, and in a forked process.
at::Allocator* pinned_allocator() noexcept;
/// Such memory as a tensor of the CPU. PyTorch's own pinned_memory(true) would take CUDA's where a
/// PyTorch has both devices.
at::Tensor pinned_bytes(std::int64_t count);
/// A share of the block that `address` lies in; nullptr where it lies in none. Whoever holds it
/// keeps the block from being used for something else.
std::shared_ptr<void> pinned_block(const void* address) noexcept;
/// Gives blocks that nobody owns back to the driver.
void pinned_cache_go() noexcept;

}  // namespace dlprim_torch
