// SPDX-License-Identifier: MIT
// Host memory that something else has made, such as memory that several processes share, prepared
// for fast copies to and from a device (CL_MEM_USE_HOST_PTR).
#pragma once

#include "runtime/context_impl.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>

namespace dlprim {

/// Makes the memory known to the driver of a context, until the result goes. The memory must live
/// as long, and begin at a page. Others may write to it at any time. It does nothing for the host.
/// Throws Error(device) where the driver refuses.
std::shared_ptr<void> pin_memory(const std::shared_ptr<ContextImpl>& context, std::byte* data,
                                 std::uint64_t bytes);

}  // namespace dlprim
