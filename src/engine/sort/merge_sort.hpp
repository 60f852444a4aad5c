// SPDX-License-Identifier: MIT
// Merge sort on OpenCL devices: sorts lines of unsigned keys, each with its position, rising and
// stable. Every pass merges pairs of sorted runs; a work-item makes a piece of the result, whose
// beginning in both runs it finds by a binary search along the merge path (Green, McColl, Bader,
// "GPU merge path", 2012). There are log2(length) passes, and runs are cut to the first `keep`
// elements, so that a few smallest of many cost little more than one pass.
#pragma once

#include "engine/launch.hpp"

#include <cstdint>

namespace dlprim {

constexpr const char* merge_sort_source = "engine/merge_sort.cl";

class MergeSort {
  public:
    /// Keys have 4 or 8 bytes. `keep` of each line's elements are wanted, at least 1.
    MergeSort(std::int64_t lines, std::int64_t length, std::int64_t keep, std::size_t key_bytes);

    /// Positions are 32 bits: longer lines cannot be sorted.
    static constexpr std::int64_t longest = (std::int64_t{1} << 31) - 1;

    /// The workspace has two buffers of keys and two of positions. The caller's kernel fills the
    /// first keys, [lines, length]; the sort sets positions.
    std::uint64_t workspace_bytes() const { return 2 * (keys_bytes() + positions_bytes()); }
    std::uint64_t first_keys() const { return 0; }

    /// Adds the calls. Operand `workspace` has the workspace at `offset`.
    void add_calls(KernelLaunch& launch, ContextImpl& context, int workspace,
                   std::uint64_t offset) const;

    /// Where the sorted keys and their positions (int) are afterwards, [lines, kept].
    std::uint64_t sorted_keys() const { return buffer(passes_) * keys_bytes(); }
    std::uint64_t sorted_positions() const {
        return 2 * keys_bytes() + buffer(passes_) * positions_bytes();
    }

  private:
    /// Sorted runs of a line: all have `run` elements, the last one may have fewer.
    struct Runs {
        std::int64_t count, run, last;
        std::int64_t elements() const { return (count - 1) * run + last; }
        Runs merged(std::int64_t keep) const;
    };
    static constexpr std::int64_t first_run = 8;

    Runs first_runs() const;
    std::uint64_t keys_bytes() const;
    std::uint64_t positions_bytes() const;
    /// The buffer that holds the result of so many passes after the first.
    static std::uint64_t buffer(int passes) { return passes % 2 == 0 ? 1 : 0; }

    std::int64_t lines_, length_, keep_;
    std::size_t key_bytes_;
    int passes_ = 0;  ///< merges after the first runs
};

}  // namespace dlprim
