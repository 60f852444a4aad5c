// SPDX-License-Identifier: MIT
// Pipeline: a step of a placed network whose parts work at once on several shards
// (pipeline_order.hpp). Each device has a thread of its own, and a courier for each device to which
// its values go.
//
// What is summed over the shards is added on each device in the tree of ShardSums, so that a step
// has the bits of one device. Running statistics are added after the forward part of a shard, which
// then puts back those of before the batch, from which every shard begins.
//
// Memory: a part has a working set for each shard in flight (NetImpl::use_set()). What crosses
// borders has as many copies as the first part has shards in flight (BorderMemory). So a shard's
// copy is free as soon as the first part may begin with the next shard that uses it, and no move
// waits for memory.
#pragma once

#include "api/placement/placed_net_impl.hpp"
#include "api/placement/shard_inputs.hpp"
#include "api/rank_threads.hpp"

#include <memory>
#include <string>
#include <vector>

namespace dlprim {

class Pipeline {
  public:
    /// Plans and compiles all working sets, after PlacedNetImpl::train_with() and the solvers of
    /// the parts. Throws Error(invalid_argument) for what cannot be summed over shards.
    Pipeline(std::shared_ptr<PlacedNetImpl> net, int shards);
    ~Pipeline();
    Pipeline(const Pipeline&) = delete;
    Pipeline& operator=(const Pipeline&) = delete;

    /// Computes all shards. Losses, gradients and running statistics are means then. Throws the
    /// first error of a device, with its name, when all threads have ended and the batch is undone.
    void run(std::vector<ShardInputs::Shard> shards);

    /// Puts back the running statistics of before the last run().
    void restore_states();
    /// PlacedSolver::output_of_batch().
    Tensor gather(const std::string& output);

  private:
    class Work;
    void run_threads(void (Work::*call)(std::size_t rank), std::chrono::duration<double> deadline);

    std::shared_ptr<Work> work_;  ///< shared with threads, which may be left behind
    std::unique_ptr<RankThreads> threads_;
    bool tried_ = false;
};

}  // namespace dlprim
