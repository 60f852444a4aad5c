// SPDX-License-Identifier: MIT
// Eager calls whose `out` tensors overlap tensors that they read: such a result is made in other
// memory and copied to its place once the call has read everything.
#pragma once

#include "exec/eager_entry.hpp"

#include <span>
#include <vector>

namespace dlprim {

/// A result that is made in memory of its own, and where the caller wants it.
struct Detour {
    EagerOperand made, wanted;
};

/// Replaces those of `places`, the memory of the results, that overlap what the call reads, unless
/// EagerEntry::in_place has the pair and both are the same bytes. Throws Error(invalid_argument) if
/// two `out` tensors overlap, and Error(out_of_memory).
std::vector<Detour> avoid_overlaps(const Context& context, const EagerCall& call,
                                   const EagerEntry& entry, std::span<const EagerOperand> operands,
                                   std::vector<EagerOperand>& places);
/// Enqueues the copies. Does not wait.
void finish_detours(const Context& context, const std::vector<Detour>& detours);

}  // namespace dlprim
