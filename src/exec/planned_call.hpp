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

class MovedResults;

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
    void start_again() { retired_.push_back(std::move(executor_)); }
    struct Place {
        std::shared_ptr<Buffer> buffer;
        std::uint64_t byte_offset = 0;
    };
    /// Before finish(): inputs in `memory` that another call has moved are read where, and in the
    /// layout in which, it made them.
    void follow(std::span<Place> memory, const MovedResults& moved);
    /// Binds the memory of the externals, which lie as in the sketch but for those that follow()
    /// has found. If the plan was replaced, its results are made elsewhere, and place_results()
    /// moves them after the run.
    void bind(const Context& context, std::span<const Place> memory);
    void place_results(const Context& context, MovedResults& moved);
    /// Executor::forget_constants(), now or when it is finished.
    void forget_constants();

    /// The first plan, which is the sketch if there is one. It stays the same until drop_sketch(),
    /// also while another thread finishes the call.
    const Plan& plan() const { return *plan_; }
    /// Programs of the sketch that were not compiled.
    const PendingPrograms& programs() const { return programs_; }
    /// Drops all plans but the present one of a call that is finished. No other thread may use it.
    void drop_sketch();
    Executor& executor() const { return *executor_; }

  private:
    void promise(const Plan& plan);

    Graph graph_;
    PlanOptions options_;
    std::unique_ptr<Plan> sketch_;
    const Plan* plan_ = nullptr;
    std::vector<Layout> layouts_;         ///< of the first plan's externals
    std::vector<const Engine*> engines_;  ///< of its steps
    PendingPrograms programs_;
    std::unique_ptr<Executor> executor_;
    std::vector<std::unique_ptr<Executor>> retired_;
    bool followed_ = false;  ///< whether follow() has changed the layout of an input
    bool forgets_constants_ = false;
    std::atomic<bool> replaced_{false};
    struct Move {
        std::size_t external;
        Place from, to;
    };
    std::vector<Move> moves_;  ///< of place_results()
};

/// Results that a replaced plan has made in another layout than its sketch promised. A call that
/// was put off after it reads them as they were made, as it would have if its caller had waited, so
/// that it has the same engines and results. Valid until nothing is put off.
class MovedResults {
  public:
    using Place = PlannedCall::Place;
    struct Result {
        Place promised;
        std::uint64_t version;  ///< of the promised memory: it changes if somebody else writes
        TensorSpec spec;
        Place made;
        Layout layout;
    };
    bool empty() const noexcept { return results_.empty(); }
    void clear() noexcept { results_.clear(); }
    void add(const Place& promised, const TensorSpec& spec, const Place& made,
             const Layout& layout) {
        results_.push_back({promised, promised.buffer->version(), spec, made, layout});
    }
    /// The last one at that place, unless it was overwritten.
    const Result* find(const Place& promised, const TensorSpec& spec) const;

  private:
    std::vector<Result> results_;
};

}  // namespace dlprim
