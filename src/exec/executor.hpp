// SPDX-License-Identifier: MIT
// Executor: replays a plan: memory allocated once, operands resolved once, then nothing but
// enqueues.
#pragma once

#include "exec/chain.hpp"
#include "plan/plan.hpp"
#include "runtime/access.hpp"

#include <dlprim/tensor.hpp>

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace dlprim {

/// The persistent memory that the plans of one net share, by block name.
using BlockStore = std::map<std::string, std::shared_ptr<Buffer>>;

/// A launch of an engine that the device refused when a part ran for the first time. The engine is
/// disabled by then: another plan does without it. States are as they were before the forward run.
class EngineFailure : public Error {
  public:
    EngineFailure(const Error& error, Part failed, bool from_forward)
        : Error(error.kind(), error.what()), part(failed), rerun_forward(from_forward) {}
    Part part;
    bool
        rerun_forward;  ///< what the part reads is lost with the plan: forward must run again first
};

/// Where an executor finds the parameters that its plan wants bound and nobody has bound.
class ParamSupply {
  public:
    virtual ~ParamSupply() = default;
    /// The parameter's values, plain.
    virtual Tensor fetch(const External& parameter) = 0;
    /// Setup asks for no more.
    virtual void done() = 0;
};

class Executor {
  public:
    /// Allocates what the plan needs; blocks that `store` has (of at least the size) are used as
    /// they are, others are added to it, except "constants", which is the executor's own. Throws
    /// Error(out_of_memory). `share_scratch`: slabs come from the store, too, shared by executors
    /// that never run at once (the queue is in order, so that eager calls never do).
    Executor(const Context& context, std::unique_ptr<Plan> plan, BlockStore& store,
             bool share_scratch = false);

    const Plan& plan() const { return *plan_; }

    /// Parameters that are not bound come from `supply`, which must outlive the executor: those
    /// that setup alone reads when it reads them first, to be let go when it has read them last.
    void fetch_params_from(ParamSupply& supply) { supply_ = &supply; }
    /// Runs setup where it is due, as the next run() would. Throws EngineFailure.
    void set_up();

    /// Binds the external of that index. Must be done for all of them before run(); cheap.
    void bind(int external, const Tensor& tensor) {
        bind(external, Access::buffer(tensor), tensor.byte_offset());
    }
    /// The same of memory whose contents lie in the external's layout.
    void bind(int external, std::shared_ptr<Buffer> buffer, std::uint64_t byte_offset);
    /// Lets go of what was bound; enqueued work keeps its memory by the driver's own references.
    void release_bindings();

    /// A scalar that the next run sees: the seed, the step, the learning rate. Uploaded with the
    /// next run as part of its commands, without a wait.
    void set_scalar(const std::string& name, double value);
    /// "@seed" or "@step": every bit counts.
    void set_integer(const std::string& name, std::uint64_t value);
    /// Scalars, and kept states, as an executor of the same graph has them.
    void take_over(const Executor& other);

    /// Whether setup (packing, folding) has run for parameters as they are now bound and as they
    /// stand; eager calls ask it, whose parameters are bound anew each time.
    void check_params();
    /// Parameters have changed: setup is run again before the next run.
    void params_changed() { setup_done_ = false; }

    /// Enqueues the steps of one part, in order; setup and scalars before, where they are due. Does
    /// not flush: a step is several parts and one flush. Throws EngineFailure.
    void run(Part part);
    /// Keeps a copy of what the next forward changes (running statistics), for restore_states().
    /// Copies of several `slot`s are kept side by side; the first is run()'s, too, while engines
    /// are new.
    static constexpr std::size_t state_slots = 3;
    void keep_states(std::size_t slot = 0);
    /// Undoes what forward changed since keep_states(); does nothing where it was not called.
    void restore_states(std::size_t slot = 0);
    /// When a step ran: of all its launches, from the first's start to the last's end.
    struct Timing {
        std::uint64_t start_ns = 0, end_ns = 0;
        std::uint64_t busy_ns = 0;  ///< sum over its launches
    };
    using Progress = std::function<void(std::string_view what, int done, int total)>;
    /// Runs forward, or with `whole_step` every part, with each launch timed; by index into
    /// plan().steps. Waits. What outlasts a run (blocks and bound gradients) is copied to
    /// the host before and written back after, whatever happens in between; scratch is not, so that
    /// backward must not go on from what a forward before has left. `progress` is called before
    /// each step; what it throws is thrown here. Throws EngineFailure.
    std::vector<Timing> profile(bool whole_step, const Progress& progress = {});
    /// Runs `part` step by step; after each, `visit(step)` is called with its work finished; stops
    /// when it returns false.
    void run_stepwise(Part part, const std::function<bool(const Step&)>& visit);

    /// The memory of a value in its plain form; undefined where it has none that is the executor's
    /// own and stays between runs.
    Tensor tensor(ValueId value) const;
    /// Copies memory of a place to the host; waits. For looking into scratch between steps.
    void read(const Place& place, void* data, std::uint64_t bytes) const;

  private:
    struct Bound {
        std::vector<BufferRef> operands;
        std::vector<std::pair<std::size_t, int>> externals;  ///< operand, external
    };
    BufferRef resolve(const Place& place) const;
    void resolve_steps(const std::vector<Step>& steps, std::vector<Bound>& bound);
    void prepare_run();
    void run_setup();
    void fetch(int external);
    void run_steps(Part part);
    /// Memory that outlasts a run and what it held.
    struct Saved {
        BufferRef place;
        std::vector<std::byte> bytes;
    };
    std::vector<Saved> save_lasting(bool whole_step) const;
    void write_back(const std::vector<Saved>& saved);
    void run_profiled(Part part, std::vector<Timing>& timings, const Progress& progress);
    void enqueue_labelled(Part part, const Progress& progress);
    [[noreturn]] void launch_failed(const Step& step, Part part, const Error& error);
    void find_states();
    std::byte* slot(const std::string& name);
    void enqueue(const Step& step, Bound& bound);
    void touch_written();
    void make_chains();

    Context context_;
    std::unique_ptr<Plan> plan_;
    std::vector<std::shared_ptr<Buffer>> slabs_, blocks_;
    struct Binding {
        std::shared_ptr<Buffer> buffer;
        std::uint64_t byte_offset = 0;
    };
    std::vector<Binding> bound_;  ///< by external
    ParamSupply* supply_ = nullptr;
    std::vector<Bound> setup_bound_, step_bound_;
    std::vector<std::byte> scalars_;  ///< host copy of the scalar block
    int scalar_block_ = -1;
    bool scalars_dirty_ = true;
    bool setup_done_ = false;
    /// Memory that forward changes and the next run reads, and where a copy of it is kept.
    std::vector<std::pair<Place, std::uint64_t>> states_;
    std::array<std::shared_ptr<Buffer>, state_slots> kept_;
    /// Steps [first, last) that run as one launch, in inference.
    struct Link {
        std::size_t first, last;
        std::unique_ptr<Chain> chain;
    };
    std::vector<Link> chains_;
    const Step* running_ = nullptr;  ///< while run() is at it
    bool states_changed_ = false;    ///< by the accumulate or update part so far
    bool proven_[4] = {};            ///< by part: has run without failing
    bool has_backward_ = false;
    std::vector<std::uint64_t> setup_params_;  ///< buffer ids, versions and offsets
};

}  // namespace dlprim
