// SPDX-License-Identifier: MIT
// The arguments and defines of kernels that include engine/indexing.clh.
#pragma once

#include "engine/indexing/indexing.hpp"
#include "engine/launch.hpp"

#include <string>

namespace dlprim {

/// Compiler options: INDEX, DIGITS, COMPONENTS and GROUPED.
std::string indexing_defines(const Indexing& indexing, DType index_type);
/// Binds the kernel's `indices` to an operand, sets all scalars of the indexing, and lets the
/// kernel say which index is out of range.
void set_indexing(KernelCall& call, ContextImpl& context, const Indexing& indexing, int operand,
                  DType index_type);

}  // namespace dlprim
