// SPDX-License-Identifier: MIT
// PlannedCall: a small plan whose programs may still have to be compiled. A sketch of it, made
// without compiling, tells where results lie, so that the call can be put off
// (runtime/put_off_calls.hpp).
#pragma once

#include "exec/executor.hpp"
#include "plan/plan_options.hpp"
#include "runtime/program_builds.hpp"

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace dlprim {

class PlannedCall {
  public:
    PlannedCall(Graph graph, PlanOptions options)
        : graph_(std::move(graph)), options_(std::move(options)) {}

    /// Plans without compiling and checking.
    void sketch(const Context& context);
    /// Whether executor() is there.
    bool finished() const noexcept { return executor_ != nullptr; }
    /// Plans again, with everything compiled and checked, unless finished(). Waits for the
    /// device. Throws what make_plan() throws.
    void finish(const Context& context, BlockStore& store);
    /// Whether the finished plan differs from the sketch, because an engine of that does not work.
    bool replaced() const noexcept { return replaced_; }
    /// The engine of a step has failed. finish() finds another one.
    void start_again() { executor_.reset(); }
    struct Place {
        std::shared_ptr<Buffer> buffer;
        std::uint64_t byte_offset = 0;
    };
    /// Binds the memory of the externals, which lie as in the sketch. If the plan was replaced, its
    /// results are made elsewhere, and place_results() moves them after the run.
    void bind(const Context& context, std::span<const Place> memory);
    void place_results(const Context& context);
    /// Executor::forget_constants(), now or when it is finished.
    void forget_constants();

    /// The sketch while there is one. It stays the same while another thread finishes the call.
    const Plan& plan() const { return sketch_ ? *sketch_ : executor_->plan(); }
    /// Programs of the sketch that were not compiled.
    const PendingPrograms& programs() const { return programs_; }
    /// Drops the sketch of a call that is finished. No other thread may use it.
    void drop_sketch();
    Executor& executor() const { return *executor_; }

  private:
    Graph graph_;
    PlanOptions options_;
    std::unique_ptr<Plan> sketch_;
    std::vector<Layout> layouts_;         ///< of the sketch's externals
    std::vector<const Engine*> engines_;  ///< of its steps
    PendingPrograms programs_;
    std::unique_ptr<Executor> executor_;
    bool forgets_constants_ = false;
    std::atomic<bool> replaced_{false};
    struct Move {
        std::size_t external;
        Place from, to;
    };
    std::vector<Move> moves_;  ///< of place_results()
};

}  // namespace dlprim
