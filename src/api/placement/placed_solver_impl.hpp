// SPDX-License-Identifier: MIT
// PlacedSolverImpl: a solver for every part of a placed network that has parameters to train. Their
// steps are one: all parts run forward and backward before the first of them is updated.
#pragma once

#include "api/late_output.hpp"
#include "api/placement/gradient_totals.hpp"
#include "api/placement/pipeline.hpp"
#include "api/placement/placed_net_impl.hpp"
#include "api/solver_impl.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace dlprim {

class PlacedSolverImpl : public SolverCore {
  public:
    PlacedSolverImpl(std::shared_ptr<PlacedNetImpl> net, const SolverOptions& options);

    NetCore& net() const override { return *net_; }
    std::vector<SolverImpl*> solvers() override;
    bool step(const std::function<bool()>& proceed) override;
    void call_off(int back) override;
    Tensor output_of_batch(const std::string& name) override;
    std::string first_nan_of_shard(int shard) override;
    int taken() const override { return static_cast<int>(fed_.size()); }
    void forget_batch() override { fed_.clear(); }

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

    const std::shared_ptr<PlacedNetImpl> net_;
    std::vector<std::unique_ptr<SolverImpl>> solvers_;
    std::vector<int> parts_;                  ///< of the solvers
    std::vector<ShardInputs::Shard> fed_;     ///< with shards: what those of the present batch read
    std::unique_ptr<GradientTotals> totals_;  ///< with several parts
    std::unique_ptr<Pipeline> pipeline_;      ///< with several shards
    // With SolverOptions::guard_loss:
    std::vector<LateOutput> losses_;
    std::vector<std::uint64_t> random_steps_;  ///< of the parts, before the present batch
    int idle_ = 0;  ///< steps since the first loss that was not finite, its own included
};

}  // namespace dlprim
