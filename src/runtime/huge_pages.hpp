// SPDX-License-Identifier: MIT
// Large pages for the buffers of processors.
#pragma once

#include "runtime/cl.hpp"

#include <cstdint>

namespace dlprim {

/// Makes a buffer of `bytes` whose memory the system may back with pages of 2 MiB. Returns null if
/// that is impossible: for buffers smaller than such a page, on systems without such pages, and
/// with DLPRIM_HUGE_PAGES=0. For devices that use the host's memory. The caller owns the buffer,
/// and the memory is freed when the runtime releases it.
///
/// Why: with pages of 4 KiB, a network's weights and activations need more pages than the TLB of a
/// core holds. Each TLB miss walks the page tables, and on virtual machines it walks two. Runtimes
/// allocate with malloc, for which Linux uses no larger pages unless it is told to.
cl_mem make_in_huge_pages(cl_context context, std::uint64_t bytes) noexcept;

}  // namespace dlprim
