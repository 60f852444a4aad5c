// SPDX-License-Identifier: MIT
// ShardTree: the order in which sums over the shards of a batch are added. It is a binary tree over
// the shard's index: the shards of a node are cut after the largest power of two below their
// number, and the node's sum is that of its two halves. So the order depends on the number of
// shards alone, not on which device has which shard, and float sums have the same bits everywhere.
//
//     7 shards:   ((0 + 1) + (2 + 3)) + ((4 + 5) + 6)
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace dlprim {

/// Neighbouring shards whose sum is known: [first, first + count).
struct ShardRange {
    int first = 0, count = 0;
    int end() const { return first + count; }
    bool operator==(const ShardRange&) const = default;
};

class ShardTree {
  public:
    explicit ShardTree(int shards) : shards_(shards) {}

    /// Whether the sums of two neighbouring ranges are the halves of a node.
    bool are_halves(const ShardRange& left, const ShardRange& right) const {
        const int size = left.count;
        const bool is_left = size > 0 && (size & (size - 1)) == 0 && left.first % (2 * size) == 0;
        return is_left && right.first == left.end() && right.count > 0 &&
               right.end() == std::min(left.first + 2 * size, shards_);
    }

    /// Takes the sum of the next range. Returns how many of the pending sums, from the newest on,
    /// are to be added to it, one after the other: each is the left half of a node whose right half
    /// is what has been added so far. The result is then pending in their place.
    std::size_t take(ShardRange next) {
        std::size_t joined = 0;
        while (!pending_.empty() && are_halves(pending_.back(), next)) {
            next = {pending_.back().first, pending_.back().count + next.count};
            pending_.pop_back();
            ++joined;
        }
        pending_.push_back(next);
        return joined;
    }

    /// The sums that wait for others, in the order of their shards.
    const std::vector<ShardRange>& pending() const { return pending_; }
    void restart() { pending_.clear(); }

    /// The most sums that are pending at once before the last of the shards [first, first + count)
    /// is taken.
    static std::size_t most_pending(int shards, const ShardRange& part) {
        ShardTree tree(shards);
        std::size_t most = 0;
        for (int shard = part.first; shard + 1 < part.end(); ++shard) {
            tree.take({shard, 1});
            most = std::max(most, tree.pending().size());
        }
        return most;
    }

  private:
    int shards_;
    std::vector<ShardRange> pending_;
};

}  // namespace dlprim
