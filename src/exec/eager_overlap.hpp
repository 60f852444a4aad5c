// SPDX-License-Identifier: MIT
// Eager calls whose `out` tensors overlap tensors that they read, or are strided views: such a
// result is made in other memory and copied to its place once the call has read everything.
#pragma once

#include "exec/copy_launches.hpp"
#include "exec/eager_entry.hpp"

#include <span>
#include <vector>

namespace dlprim {

/// A result that is made in memory of its own, and where the caller wants it.
struct Detour {
    EagerOperand made, wanted;
    std::vector<std::int64_t> made_strides = {};  ///< if the wanted place is a view
};

/// Replaces those of `places`, the memory of the results, that the plan does not write as they lie,
/// or that overlap what the call reads, unless EagerEntry::in_place has the pair and both are the
/// same elements. Throws Error(invalid_argument) if two `out` tensors without gaps overlap, and
/// Error(out_of_memory).
std::vector<Detour> avoid_overlaps(const Context& context, const EagerCall& call,
                                   const EagerEntry& entry, std::span<const EagerOperand> operands,
                                   std::vector<EagerOperand>& places);
/// Enqueues the copies. Does not wait.
void finish_detours(const Context& context, CopyLaunches& copies,
                    const std::vector<Detour>& detours);

}  // namespace dlprim
