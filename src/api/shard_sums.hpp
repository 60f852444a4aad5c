// SPDX-License-Identifier: MIT
// ShardSums: what a solver adds up over the shards of a batch, on one device: gradients, running
// statistics and losses. They lie in the net's own tensors, where each shard leaves what is its
// own, and where after the last shard the means over all of them are found.
#pragma once

#include "base/shard_tree.hpp"

#include <dlprim/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace dlprim {

class NetImpl;
struct Plan;

class ShardSums {
  public:
    /// For batches of so many shards; with 1 there is nothing to add. Allocates what holds the sums
    /// that wait for others. The net has a solver, and keeps its blocks of parameters.
    void attach(NetImpl& net, int shards);

    int shards() const { return shards_; }
    int taken() const { return taken_; }  ///< shards of the present batch that were added

    /// Enqueues what follows the backward part of the next shard; shards come in the order of their
    /// index. Returns whether it was the last: then the net's tensors hold the sums in the order of
    /// ShardTree, multiplied by 1 / shards.
    bool add(NetImpl& net);
    /// Forgets a batch that is not finished.
    void restart();

    /// Device memory that attach() takes for a plan of such a solver.
    static std::uint64_t waiting_bytes(const Plan& plan, int shards);

  private:
    /// Sums of one of the net's tensors that wait for others, by their number.
    using Waiting = std::vector<Tensor>;
    void add(const Tensor& own, const Waiting& waiting, std::size_t joined, bool is_last) const;

    int shards_ = 1, taken_ = 0;
    ShardTree tree_{1};
    std::vector<Tensor> lasting_;      ///< gradients and running statistics
    std::vector<std::string> losses_;  ///< outputs, which each plan has anew
    std::vector<Waiting> waiting_;     ///< of these tensors, and then of these outputs
};

}  // namespace dlprim
