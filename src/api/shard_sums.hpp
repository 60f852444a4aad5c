// SPDX-License-Identifier: MIT
// ShardSums: what a solver adds up over the shards of a batch, on one device: gradients, running
// statistics and losses. They lie in the net's own tensors, where each shard leaves what is its
// own, and where after the last shard the means over all of them are found.
//
// In an exchange losses and running statistics leave first, as soon as the backward part of the
// device's last shard has begun. The block of gradients leaves in ranges. The gradients of the last
// operators, which lie at the block's end, are complete first, so that the exchange adds them up
// while the backward part of the device's last shard still runs. Memory that other devices reach
// comes in limited sizes, so that the sums of a long block wait in several segments of it.
#pragma once

#include "base/shard_tree.hpp"
#include "collective/exchange/exchange.hpp"
#include "exec/executor.hpp"

#include <dlprim/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
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
    /// The same for a device that computes some of the shards, as a rank of an exchange. Gradients
    /// leave in ranges of about `range_bytes` bytes.
    void attach(NetImpl& net, std::shared_ptr<Exchange> exchange, std::size_t rank,
                std::uint64_t range_bytes);

    /// In an exchange: everything leaves after the backward part, in which the ranks of several
    /// processes exchange other values.
    void leave_late() { leaves_late_ = true; }

    int shards() const { return shards_; }
    int taken() const { return taken_; }  ///< shards of the present batch that were added
    int next() const { return part_.first + taken_; }  ///< index of the next shard
    int own() const { return part_.count; }  ///< shards of a batch that the device computes
    bool is_alone() const { return !exchange_; }
    /// Whether a transport adds in an order of its own.
    bool is_in_any_order() const { return exchange_ && exchange_->is_in_any_order(); }
    /// Records what the exchange does, and what this rank waits for in it.
    void set_trace(const std::shared_ptr<StepTrace>& trace) {
        if (exchange_) exchange_->set_trace(trace);
    }

    /// What the backward part of the next shard is to call after each step. Empty unless it is the
    /// last one of a rank.
    Executor::AfterStep watch(NetImpl& net);
    /// Enqueues what follows the backward part of the next shard; shards come in the order of their
    /// index. Returns whether it was the last of the device: then the net's tensors hold the sums
    /// in the order of ShardTree, multiplied by 1 / shards. In an exchange that waits for the
    /// others.
    bool add(NetImpl& net);
    /// The same in halves, on one device, where forward parts of later shards run before the
    /// backward part of a shard: after its forward part the running statistics, after its backward
    /// part gradients and losses.
    bool add_forward(NetImpl& net);
    bool add_backward(NetImpl& net);
    /// Forgets a batch that is not finished.
    void restart();

    /// Gives what this rank has updated of the parameters to all others, and takes theirs.
    void share_parameters(NetImpl& net);

    /// Device memory that sums take for a plan of rank `rank`, if the ranks compute these shards.
    static std::uint64_t waiting_bytes(const Plan& plan, const std::vector<ShardRange>& parts,
                                       std::size_t rank);
    /// Elements of the block of gradients that leave together.
    struct Range {
        std::int64_t begin = 0, end = 0;
        std::size_t last_step = 0;  ///< of the present plan, after which it and those before it are
                                    ///< complete
        std::size_t segment = 0;    ///< whose memory its sums wait in
    };
    /// The ranges in which the gradients of a plan leave, the block's end first.
    static std::vector<Range> ranges_of(const Plan& plan, std::uint64_t range_bytes);
    /// Bytes of the running statistics of a plan.
    static std::uint64_t statistics_bytes(const Plan& plan);

  private:
    bool add_half(NetImpl& net, bool forward, ShardTree& tree, int& taken);
    /// Sums of one of the net's tensors that wait for others, by their number.
    using Waiting = std::vector<Tensor>;
    void reserve(NetImpl& net, std::size_t most);
    /// Whether the only shard of a rank need not move: its sum waits where the net has it, unless
    /// kernels of other ranks are to reach it.
    static bool waits_in_place(const ShardRange& part, bool in_reach) {
        return part.count == 1 && !in_reach;
    }
    /// Where at most so many sums of a tensor wait, which may be the tensor itself if it lasts.
    Waiting make_waiting(const Tensor& tensor, std::size_t most, bool lasts);
    static std::vector<Range> cut(const Plan& plan, std::uint64_t range_bytes);
    static void find_last_steps(const Plan& plan, std::vector<Range>& ranges);
    /// Joins neighbouring ranges to segments of at most so many bytes.
    void assign_segments(std::uint64_t largest);
    /// The segments of the block of gradients, in the order of ranges.
    std::vector<Tensor> segments_of(const Tensor& block) const;
    /// Lets the tree take the last shard of the rank, and gives to the exchange what its forward
    /// part has made: losses and running statistics.
    void send_rest(NetImpl& net);
    /// Gives the next range to the exchange.
    void send_range();
    /// Gives all that has not left yet, and waits for the means.
    void meet(NetImpl& net);
    Exchange::Term term_of(const Tensor& own, const Waiting& waiting) const;
    Tensor own(NetImpl& net, std::size_t index) const;
    /// Whether the tensor is a running statistic, which forward makes.
    bool is_of_forward(std::size_t index) const {
        return index >= gradients_ && index < lasting_.size();
    }
    /// Adds what waits to the tensor, after `tree` has taken it. Of the last shard `share` is
    /// 1 / shards, by which the sum is multiplied, and before it 0.
    static void add(const Tensor& own, const Waiting& waiting, const ShardTree& tree,
                    std::size_t joined, double share);

    int shards_ = 1, taken_ = 0;
    ShardRange part_{0, 1};
    std::shared_ptr<Exchange> exchange_;
    std::size_t rank_ = 0;
    ShardTree tree_{1};
    ShardTree forward_tree_{1};  ///< of add_forward()
    int forwards_ = 0;           ///< shards of the present batch that it has taken
    std::size_t gradients_ = 0;  ///< how many of the lasting tensors are segments of the gradients
    std::vector<Tensor> lasting_;      ///< segments of the gradients, and running statistics
    std::vector<std::string> losses_;  ///< outputs, which each plan has anew
    std::vector<Waiting> waiting_;     ///< of these tensors, and then of these outputs
    std::vector<Range> ranges_;        ///< in an exchange, the block's end first
    bool leaves_late_ = false;
    bool leaving_ = false;    ///< whether the tree has taken the last shard of the rank
    std::size_t joined_ = 0;  ///< then: how many sums it is added to
    std::size_t sent_ = 0;    ///< and how many ranges have left
};

}  // namespace dlprim
