// SPDX-License-Identifier: MIT
// OrderedSum: adds sums of some elements on a device in the order of ShardTree. The last addition,
// which completes the sum of all shards, makes their mean.
#pragma once

#include "base/shard_tree.hpp"
#include "collective/devices/peer_memory.hpp"

#include <dlprim/tensor.hpp>

#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

namespace dlprim {

class OrderedSum {
  public:
    /// Says where the sum of `left` and its right half goes, which may be `left`. The first place
    /// is read again.
    using Place = std::function<std::vector<Tensor>(const Tensor& left, bool is_mean)>;
    OrderedSum(int shards, const AddPair& add, Place place)
        : tree_(shards), shards_(shards), add_(add), place_(std::move(place)) {}

    /// Takes the next sum, in the order of shards, and enqueues the additions that it completes.
    void take(const ShardRange& node, Tensor sum) {
        sums_.push_back(std::move(sum));
        for (std::size_t joined = tree_.take(node); joined > 0; --joined) {
            const Tensor right = std::move(sums_.back());
            sums_.pop_back();
            const bool is_mean = joined == 1 && tree_.pending().front().count == shards_;
            const std::vector<Tensor> places = place_(sums_.back(), is_mean);
            add_(sums_.back(), right, places, is_mean ? 1.0 / shards_ : 1.0);
            sums_.back() = places.front();
        }
    }
    /// What waits for other sums.
    const std::vector<Tensor>& sums() const { return sums_; }

  private:
    ShardTree tree_;
    const int shards_;
    const AddPair& add_;
    const Place place_;
    std::vector<Tensor> sums_;
};

}  // namespace dlprim
