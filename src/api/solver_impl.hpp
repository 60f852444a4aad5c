// SPDX-License-Identifier: MIT
// SolverImpl: the solver of a net on one device.
#pragma once

#include "api/net_impl.hpp"
#include "api/shard_output.hpp"
#include "api/shard_sums.hpp"
#include "api/solver_core.hpp"
#include "collective/exchange/step_trace.hpp"
#include "collective/processes/process_group.hpp"
#include "runtime/shard_meeting.hpp"

#include <dlprim/solver_options.hpp>

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace dlprim {

class SolverImpl : public SolverCore {
  public:
    /// Attaches to the net; see Solver's constructor.
    SolverImpl(std::shared_ptr<NetImpl> net, const SolverOptions& how);

    SolverImpl* alone() override { return this; }
    NetCore& net() const override { return *shared_net; }
    std::vector<SolverImpl*> solvers() override { return {this}; }
    bool step(const std::function<bool()>& proceed) override;
    void call_off(int back) override;
    Tensor output_of_batch(const std::string& name) override;
    std::string first_nan_of_shard(int shard) override;
    int taken() const override { return sums.taken(); }
    void forget_batch() override { sums.restart(); }

    const std::shared_ptr<NetImpl> shared_net;
    std::uint64_t updates = 0;
    std::uint64_t batches = 0;  ///< since the last update
    ShardSums sums;
    /// With several SolverOptions::state_parts: the team's solvers of this process, this one
    /// included, by part.
    std::vector<SolverImpl*> peers;
    std::shared_ptr<ProcessGroup> group;  ///< then: the processes that have the other parts, if any
    std::vector<std::size_t> parts_of_processes;  ///< and how many each of them has
    std::string synchronous;  ///< a batch norm that takes statistics of all shards, if there is one
    std::unique_ptr<ShardMeeting> meeting;  ///< then: where it does, in a team
    std::size_t batch_slot = 0;             ///< where the states before the present batch are kept
    /// With a guard: the state before each of the last steps, by the step's number.
    struct Before {
        std::uint64_t updates, batches, random_step;
    };
    std::array<Before, 2> before{};
    std::uint64_t guarded = 0;  ///< number of steps that `before` has recorded
    static_assert(std::tuple_size_v<decltype(before)> < Executor::state_slots);
    std::shared_ptr<StepTrace> trace;  ///< none where steps are not traced
    std::size_t trace_rank = 0;
    Before present{};  ///< before the batch that is computed, or that call_off() undid last
    std::size_t slot() const { return 1 + guarded % before.size(); }  ///< of the next step

    /// Sets what the update of the next step reads: the rate, and what depends on the step.
    void set_scalars();
    /// With a meeting: lets engines of the step's parts fail, and be replaced, before they meet.
    /// Shards that have met cannot begin a part again.
    void try_parts();
    /// Enqueues what follows the backward part: the sums over the shards of the batch, and after
    /// the last of them the update.
    void finish_shard();
    /// Its last two steps: takes the gradients of a batch, and returns whether the update follows;
    /// and the update.
    bool take_batch();
    void update();
    /// Makes the solver one of several that compute the shards of a batch.
    void share(std::shared_ptr<Exchange> exchange, std::size_t rank, std::uint64_t range_bytes) {
        sums.attach(*shared_net, std::move(exchange), rank, range_bytes);
    }
    /// Records the steps of this solver as those of a rank.
    void set_trace(std::shared_ptr<StepTrace> recorder, std::size_t rank) {
        trace = std::move(recorder);
        trace_rank = rank;
        sums.set_trace(trace);
    }
    /// Says what the device has been given since the last mark.
    void mark(TraceKind kind, const char* name) const {
        if (trace) trace->mark(trace_rank, shared_net->context(), kind, name);
    }
    /// Forgets the shards of the present batch. Random numbers go on as if it had been whole.
    void forget_shards();

    // The solver's own share of what SolverCore does for all stages.
    std::map<std::string, Tensor> own_averages(Receivers receivers);
    bool gather_own_states();
    /// A state that the solver has of its net, in host memory: as it is, or put together from the
    /// parts that the solvers of a team keep. They wait.
    std::vector<std::byte> read_state(const std::string& state);
    void write_state(const std::string& state, const std::vector<std::byte>& data);
    /// A state in the plan's graph; null if the plan has none of that name.
    const Value* find_state(const std::string& state) const;

  private:
    /// A state of all elements of the block of parameters, put together from the parts that the
    /// solvers of a team keep; and its opposite. A process that is no receiver gets nothing.
    std::vector<std::byte> gather(const std::string& state, Receivers receivers);
    void scatter(const std::string& state, const std::vector<std::byte>& whole);
    void exchange_parts(const std::string& state, std::vector<std::byte>& whole,
                        Receivers receivers);
    /// States that gather_own_states() has put together, until the checkpoint is written.
    std::map<std::string, std::vector<std::byte>> gathered_;
    std::map<std::string, ShardOutput> outputs_;  ///< of whole batches, by name
};

}  // namespace dlprim
