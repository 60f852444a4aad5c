// SPDX-License-Identifier: MIT
// What memory holds that a context has just allocated.
#pragma once

#include "runtime/buffer.hpp"

namespace dlprim {

/// Whether a buffer from ContextImpl::allocate(), which nothing has been written to, is known to
/// hold zeros. Memory in large pages does (runtime/huge_pages.hpp): the system clears such a page
/// when it is first touched. To fill it with zeros would touch all of it on one thread.
bool is_new_zeros(const Buffer& buffer) noexcept;

}  // namespace dlprim
