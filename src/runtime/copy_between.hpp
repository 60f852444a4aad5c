// SPDX-License-Identifier: MIT
// copy_between: bytes from the memory of one context to that of another. CopyStage: the same for
// many copies, with pinned memory that stays.
#pragma once

#include "runtime/context_impl.hpp"

#include <array>
#include <cstdint>
#include <memory>

namespace dlprim {

/// The pinned memory of copies between two contexts. One thread at a time.
class CopyStage {
  public:
    /// As copy_between(). The first copy allocates the pinned memory, and others take that again.
    void copy(ContextImpl& source, const BufferRef& from, ContextImpl& target, const BufferRef& to,
              std::uint64_t bytes);

  private:
    std::array<std::shared_ptr<std::byte>, 4> slots_;
    std::uint64_t piece_ = 0;  ///< bytes of a slot
};

/// Enqueues the copy where both contexts are the same, and else waits until it is done: OpenCL has
/// no copies between two cl_contexts, so that the bytes go through pinned memory of the host.
void copy_between(ContextImpl& source, const BufferRef& from, ContextImpl& target,
                  const BufferRef& to, std::uint64_t bytes);

}  // namespace dlprim
