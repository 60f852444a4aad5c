// SPDX-License-Identifier: MIT
// MemoryMap: what takes device memory in a plan of a network, and when. Net::plan_memory() makes
// it before anything is allocated. It is plain data that belongs to the caller.
#pragma once

#include <dlprim/namespace.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace dlprim {

struct MemoryMap {
    /// Something that takes memory.
    struct Entry {
        enum class Kind {
            scratch,    ///< a tensor between nodes
            workspace,  ///< what an engine works in during one step
            bound,      ///< an input, output, gradient or parameter with memory of its own
            block,      ///< what stays from run to run: "params", "gradients", "states", ...
        };
        Kind kind = Kind::scratch;
        std::string name;         ///< the tensor's or block's
        std::uint64_t bytes = 0;  ///< as stored, in the layout of its engine
        /// The steps from the one that makes it to the last one that reads it. Others are live in
        /// all steps, except that a parameter that only setup reads is not live after it.
        int first = 0, last = 0;
        int slab = -1;  ///< of scratch and workspace: the allocation that it is part of
        /// Made for a second time, in backward, since the first one was not kept
        /// (NetOptions::memory_limit).
        bool recomputed = false;
        std::uint64_t offset = 0;  ///< and where it lies in that
    };
    /// A launch, in the order in which they run.
    struct Step {
        std::string name, type;
        std::string phase;             ///< "setup", "forward", "backward", "accumulate" or "update"
        std::uint64_t live_bytes = 0;  ///< of all entries that are live then
    };

    std::vector<Entry> entries;
    std::vector<Step> steps;
    std::vector<std::uint64_t> slabs;  ///< sizes of the allocations for scratch
    /// What is allocated while batches run, and while parameters are packed before the first one.
    std::uint64_t peak_bytes = 0, setup_peak_bytes = 0;
    std::uint64_t persistent_bytes = 0;    ///< the part of peak_bytes that is not in slabs
    std::uint64_t limit_bytes = 0;         ///< NetOptions::memory_limit, or the device's memory
    std::uint64_t largest_allocation = 0;  ///< the most that the device gives in one piece
    std::int64_t batch = 0;                ///< the largest first dimension of an input
    /// About how large the batch may be so that the plan fits, by proportion; 0: not even 1, or it
    /// is not the batch that takes the memory.
    std::int64_t estimated_batch = 0;

    /// Whether the device has enough memory, in pieces that it gives.
    bool fits() const;
};

}  // namespace dlprim
