// SPDX-License-Identifier: MIT
// Addresses for storages on devices that have none: OpenCL 1.2 knows buffers, not pointers.
//
// They come from one large reservation of address space without memory behind it. So they are
// unique, arithmetic on them works, and who touches one faults at once.
//
// Threads: any thread may call these.
#pragma once

#include <cstddef>

namespace dlprim_torch {

/// Reserves at least `bytes` addresses; throws torch.OutOfMemoryError where none are left.
void* reserve_addresses(std::size_t bytes);
void release_addresses(void* begin, std::size_t bytes) noexcept;

}  // namespace dlprim_torch
