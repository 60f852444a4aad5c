// SPDX-License-Identifier: MIT
// Large pages for the buffers of processors.
#pragma once

#include "runtime/cl.hpp"

#include <cstdint>

namespace dlprim {

/// A buffer of `bytes` whose memory the system may back with pages of 2 MiB, or null where that
/// cannot be: buffers smaller than such a page, systems without, DLPRIM_HUGE_PAGES=0. For devices
/// whose memory is the host's. The caller owns it; its memory goes when the runtime lets go of it.
///
/// Why: in pages of 4 KiB a network's weights and activations are more pages than a core's address
/// cache holds, and each miss of it is a walk through the page tables, on virtual machines through
/// two. Runtimes take memory from malloc, for which Linux makes no larger pages unless told.
cl_mem make_in_huge_pages(cl_context context, std::uint64_t bytes) noexcept;

}  // namespace dlprim
