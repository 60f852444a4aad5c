// SPDX-License-Identifier: MIT
// Executor: replays a plan. It allocates memory and resolves operands once, and then only enqueues.
#pragma once

#include "exec/chain.hpp"
#include "plan/engine_failed.hpp"
#include "plan/kept_values.hpp"
#include "plan/plan.hpp"
#include "runtime/access.hpp"

#include <dlprim/tensor.hpp>

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dlprim {

/// The persistent memory that the plans of one net share, by block name.
using BlockStore = std::map<std::string, std::shared_ptr<Buffer>>;

/// Scratch memory of plans of which one runs at a time and keeps nothing in it for later: slabs by
/// index, each as large as that of any of them.
class SharedSlabs {
  public:
    /// Slab `index` with at least so many bytes. Throws Error(out_of_memory).
    const std::shared_ptr<Buffer>& at(ContextImpl& device, std::size_t index, std::uint64_t bytes);
    void clear() { slabs_.clear(); }

  private:
    std::vector<std::shared_ptr<Buffer>> slabs_;
};

/// Provides parameters that the plan expects to be bound and that are not.
class ParamSupply {
  public:
    virtual ~ParamSupply() = default;
    /// The values of the parameter, in a plain layout.
    virtual Tensor fetch(const External& parameter) = 0;
    /// Called when setup needs no more parameters.
    virtual void done() = 0;
};

class Executor {
  public:
    /// Allocates what the plan needs. Blocks in `store` of at least the right size are reused, and
    /// others are added to it. The blocks of constants and scalars are not shared so. With
    /// `brief_scratch`, as eager calls and the nets of a session want it, memory comes from the
    /// context's pool, and slabs only from take_scratch() to release_bindings(). Throws
    /// Error(out_of_memory), and EngineFailed (plan/engine_failed.hpp) if checks find an
    /// engine of a chain wrong; a new plan has another one. With `slabs`, scratch memory is that of
    /// several plans, again from take_scratch() to release_scratch().
    Executor(const Context& context, std::unique_ptr<Plan> plan, BlockStore& store,
             bool brief_scratch = false, SharedSlabs* slabs = nullptr);

    const Plan& plan() const { return *plan_; }

    /// Takes parameters that are not bound from `supply`, which must outlive the executor.
    /// Parameters that only setup reads are fetched before their first use and released after their
    /// last.
    void fetch_params_from(ParamSupply& supply) { supply_ = &supply; }
    /// Adds what setup makes to `values`, which must outlive the executor, when it has run. They
    /// are those of PlanOptions::kept.
    void share_setup(KeptValues& values) { kept_values_ = &values; }
    /// Runs setup if it is needed, as the next run() would. Throws EngineFailed.
    void set_up();

    /// Binds the external of this index. All externals must be bound before run(). Cheap.
    void bind(int external, const Tensor& tensor) {
        bind(external, Access::buffer(tensor), tensor.byte_offset());
    }
    /// The same for memory whose contents are in the external's layout.
    void bind(int external, std::shared_ptr<Buffer> buffer, std::uint64_t byte_offset);
    /// Takes memory for the slabs of an executor with `brief_scratch` or `slabs`, which a run, a
    /// profile and setup need.
    void take_scratch();
    /// Releases what take_scratch() took. Enqueued work may still use it: what is enqueued later on
    /// the same queue finds it unused.
    void release_scratch() noexcept;
    /// The memory that the plan keeps between runs, without what is bound to it, slabs that it
    /// shares and constants that another plan has made.
    std::uint64_t kept_bytes(bool with_blocks_of_net = true) const;
    /// Says that parameters change from run to run, so that what setup makes of them (packed
    /// weights) is worth no memory of its own: take_scratch() takes that, too, and each run repeats
    /// setup. Does nothing if the plan has literals, which lie there as well. For `brief_scratch`.
    void forget_constants();
    /// Releases the bound memory and the scratch, which enqueued work may still use, too.
    void release_bindings() noexcept;

    /// Sets a scalar for the next run: the seed, the step, the learning rate. It is uploaded by the
    /// commands of that run, without waiting.
    void set_scalar(const std::string& name, double value);
    /// Sets "@seed" or "@step" exactly, with all 64 bits.
    void set_integer(const std::string& name, std::uint64_t value);
    /// Sets p0, p1, ... of programs whose scalars are arguments (engine/pointwise/job.hpp),
    /// exactly.
    void set_scalars(std::span<const Scalar> values);
    /// Copies scalars and kept states from an executor of the same graph.
    void take_over(const Executor& other);

    /// Checks whether setup (packing, folding) has run for the parameters that are bound now and
    /// for their current contents. Eager calls need it, since they bind parameters in every call.
    void check_params();
    /// Must be called when parameters have changed: the next run then repeats setup.
    void params_changed() {
        setup_done_ = false;
        setup_found_ = false;
    }

    /// Called with the index of a step of the plan that has been enqueued. May enqueue more.
    using AfterStep = std::function<void(std::size_t step)>;
    /// Enqueues the steps of one part in order, after setup and scalars if these are needed. Does
    /// not flush, because a training step consists of several parts and one flush. Throws
    /// EngineFailed. `after` is called only where the part is proven: what another plan might have
    /// to repeat has no steps that are over.
    void run(Part part, const AfterStep& after = {});
    /// Whether run(part) has succeeded, so that no engine of the part is new.
    bool proven(Part part) const noexcept { return proven_[static_cast<std::size_t>(part)]; }
    /// Copies what the next forward run changes (running statistics), for restore_states(). There
    /// are several slots for copies. run() also uses the first one as long as engines are new.
    static constexpr std::size_t state_slots = 3;
    void keep_states(std::size_t slot = 0);
    /// Undoes what forward runs changed since keep_states(). Does nothing if keep_states() was not
    /// called.
    void restore_states(std::size_t slot = 0);
    /// When a step ran: from the start of its first launch to the end of its last.
    struct Timing {
        std::uint64_t start_ns = 0, end_ns = 0;
        std::uint64_t busy_ns = 0;  ///< sum over its launches
    };
    using Progress = std::function<void(std::string_view what, int done, int total)>;
    /// Runs the forward part, or with `whole_step` every part, and times each launch. The result is
    /// indexed like plan().steps. Waits. Blocks and bound gradients are copied to the host before
    /// and written back afterwards, also if something fails. Scratch is not, so backward must not
    /// continue with results of an earlier forward run. `progress` is called before each step, and
    /// its exceptions are passed on. Throws EngineFailed.
    std::vector<Timing> profile(bool whole_step, const Progress& progress = {});
    /// Runs `part` step by step. After each step is finished, calls `visit(step)`, and stops when
    /// that returns false.
    void run_stepwise(Part part, const std::function<bool(const Step&)>& visit);

    /// The memory of a value in its plain form. Undefined if the executor does not own such memory,
    /// or does not keep it between runs.
    Tensor tensor(ValueId value) const;
    /// Memory within a block of the plan that lasts between runs, as a row-major tensor.
    Tensor tensor(int block, std::uint64_t byte_offset, const Shape& shape, DType dtype) const;
    /// Copies the memory of a place to the host. Waits. Meant for inspecting scratch between steps.
    void read(const Place& place, void* data, std::uint64_t bytes) const;

  private:
    struct Bound {
        std::vector<BufferRef> operands;
        std::vector<std::pair<std::size_t, int>> externals;  ///< operand, external
        std::vector<std::size_t> scratch;  ///< operands in memory that each run may take anew
    };
    BufferRef resolve(const Place& place) const;
    bool moves(const Place& place) const;
    void resolve_steps(const std::vector<Step>& steps, std::vector<Bound>& bound);
    void prepare_run();
    void run_setup();
    /// Whether another plan has made all that this step of setup makes.
    bool is_found(std::size_t step) const {
        return setup_found_ && step < plan_->setup_found.size() && plan_->setup_found[step];
    }
    void fetch(int external);
    void run_steps(Part part, const AfterStep& after);
    /// Memory that is kept between runs, with its saved contents.
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
    /// Checks engines whose kernels are compiled in chains only. Throws EngineFailed.
    void check_unchecked();

    Context context_;
    std::unique_ptr<Plan> plan_;
    const bool brief_scratch_;
    SharedSlabs* const shared_slabs_;
    bool brief_constants_ = false;
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
    bool setup_found_ = true;  ///< whether the plan's setup_found holds for the parameters' values
    KeptValues* kept_values_ = nullptr;
    /// Memory that a forward run changes and the next run reads, and where it is copied to.
    std::vector<std::pair<Place, std::uint64_t>> states_;
    std::array<std::shared_ptr<Buffer>, state_slots> kept_;
    /// Steps [first, last) that run as one launch in inference.
    struct Link {
        std::size_t first, last;
        std::unique_ptr<Chain> chain;
    };
    std::vector<Link> chains_;
    const Step* running_ = nullptr;  ///< the step that run() is enqueueing
    bool states_changed_ = false;    ///< whether the accumulate or update part has changed them
    bool proven_[4] = {};            ///< by part: whether it has run without failing
    bool has_backward_ = false;
    std::vector<std::uint64_t> setup_params_;  ///< buffer ids, versions and offsets
};

}  // namespace dlprim
