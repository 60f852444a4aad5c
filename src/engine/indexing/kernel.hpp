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

/// Elements of a slot that a work-item of the kernel moves: many on CPUs, which loop over them. On
/// GPUs neighbours move neighbouring elements. It is compiled in, so only slots of single elements
/// differ from others.
std::int64_t slot_step(const Traits& device, const Indexing& indexing);

}  // namespace dlprim
