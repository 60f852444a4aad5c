// SPDX-License-Identifier: MIT
// copy_between: bytes from the memory of one context to that of another.
#pragma once

#include "runtime/context_impl.hpp"

namespace dlprim {

/// Enqueues the copy where both contexts are the same, and else waits until it is done: OpenCL has
/// no copies between two cl_contexts, so that the bytes go through pinned memory of the host.
void copy_between(ContextImpl& source, const BufferRef& from, ContextImpl& target,
                  const BufferRef& to, std::uint64_t bytes);

}  // namespace dlprim
