// SPDX-License-Identifier: MIT
// PlacedSolverImpl: the solvers of a placed network's parts, and the steps that they make together.
#pragma once

#include "api/late_output.hpp"
#include "api/placement/gradient_totals.hpp"
#include "api/placement/pipeline.hpp"
#include "api/placement/placed_net_impl.hpp"

#include <dlprim/placed_net.hpp>
#include <dlprim/solver.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace dlprim {

class PlacedSolverImpl {
  public:
    PlacedSolverImpl(std::shared_ptr<PlacedNetImpl> net, const SolverOptions& options);

    void step();
    Tensor output_of_batch(const std::string& name);
    void call_off(int back);
    /// Sets random numbers to those of a shard of the step that was called off, and runs forward.
    /// As PlacedNet::first_nan().
    std::string first_nan_of_shard(int shard);

    const std::shared_ptr<PlacedNetImpl> net;
    const SolverOptions options;
    double rate = 0;
    std::vector<std::unique_ptr<Solver>> solvers;
    std::vector<ShardInputs::Shard> fed;  ///< with shards: what those of the present batch read

  private:
    void open_solvers();
    /// Enqueues forward and backward of the present batch and, with a guard, reads of its losses.
    void compute();
    /// Keep and put back what forward changes: running statistics.
    void keep_states();
    void restore_states();
    void read_losses();
    /// Waits for losses that are read. Without a guard there are none.
    bool losses_are_finite();
    void update();

    std::vector<int> parts_;                  ///< of the solvers
    std::unique_ptr<GradientTotals> totals_;  ///< with several parts
    std::unique_ptr<Pipeline> pipeline_;      ///< with several shards
    // With SolverOptions::guard_loss:
    std::vector<LateOutput> losses_;
    std::vector<std::uint64_t> random_steps_;  ///< of the parts, before the present batch
    int idle_ = 0;  ///< steps since the first loss that was not finite, its own included
};

}  // namespace dlprim
