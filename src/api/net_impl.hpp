// SPDX-License-Identifier: MIT
// NetImpl: a network on one device: the memory of its parameters, and its plans, one per set of
// input shapes. In inference, large parameters have device memory only while they are needed.
#pragma once

#include "api/index_inputs.hpp"
#include "api/net_core.hpp"
#include "api/part_border.hpp"
#include "base/shard_tree.hpp"
#include "exec/executor.hpp"
#include "graph/description.hpp"
#include "graph/passes/passes.hpp"
#include "plan/plan_options.hpp"
#include "plan/too_large.hpp"
#include "runtime/transfer.hpp"

#include <dlprim/net.hpp>
#include <dlprim/solver.hpp>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dlprim {

/// Applies options to a description: adds the extra outputs and sets the precisions of operators.
/// Returns remarks. Throws Error(invalid_argument).
std::vector<std::string> apply_options(NetDescription& description, const NetOptions& options);
/// The graph before any pass. Call apply_options() on the description first.
Graph build_graph(const NetDescription& description, const NetOptions& options);

/// Throws Error(invalid_argument) for inputs, named in quotes, that were never set. `action` is
/// what needs them.
[[noreturn]] void fail_unset(const std::vector<std::string>& inputs, std::string_view action,
                             bool has_loss);

class NetImpl : public NetCore, private ParamSupply {
  public:
    NetImpl(const Context& context, NetDescription description, const NetOptions& options);
    /// Without a network: planning is an error.
    NetImpl(const Context& context, const NetOptions& options);

    /// A description that depends on the inputs' shapes is made anew by `make` for others.
    void describe_by(std::function<NetDescription(const NetOptions&)> make) {
        redescribe_ = std::move(make);
    }

    /// Inputs whose memory is given, by name: every plan reads them there.
    void read_inputs_from(std::map<std::string, Tensor> tensors) {
        given_.inputs = std::move(tensors);
    }

    /// Makes the net one of many that run one at a time. It takes scratch memory only for a run,
    /// reads parameters where their source has them (ParamSource::shared()), and shares what setup
    /// makes of them through `kept`, which outlives the net. For inference, and to be called before
    /// the first plan.
    void run_among_many(KeptValues& kept) {
        among_many_ = true;
        kept_ = &kept;
    }
    /// The memory that the current plan keeps between runs: without parameters that are shared, and
    /// inputs that are given.
    std::uint64_t kept_bytes();

    /// Makes the net a part of a larger one. To be called before the first plan.
    void set_border(PartBorder border) { border_ = std::move(border); }
    /// From now on the net runs in this working set, whose plan binds `memory`. A set has a plan of
    /// its own, with memory of its own for what the plan computes, so that forward parts of several
    /// batches can run before the backward part of the first. They share parameters, their
    /// gradients and the solver's state.
    void use_set(int set, const GivenMemory& memory);

    /// A plan, and the tensors that are bound to it.
    struct Built {
        std::unique_ptr<Executor> executor;
        std::map<std::string, Tensor> inputs, outputs, output_gradients, gradients;
        std::map<std::string, Tensor> later_gradients;  ///< of a part (PartBorder::continued)
        std::map<std::string, ValueId> params;
        std::map<std::string, LabelInput> classes;  ///< label inputs: what they may hold
        std::map<std::string, std::vector<IndexReader>> indices;  ///< index inputs: their readers
        std::vector<std::pair<std::string, double>> losses;
        bool ran_forward = false;
        std::uint64_t last_use = 0;  ///< larger means that it became current later
        std::map<std::string, std::unique_ptr<InputFeed>> feeds;  ///< of inputs that were set
        std::set<std::string> read;                               ///< inputs that anything reads
        /// Inputs that were set, or handed out for the caller to write to.
        std::set<std::string> filled;
        bool has_outputs = false;  ///< whether a forward has run, be it of a profile
    };

    const Context& context() const override { return context_; }
    NetImpl* alone() override { return this; }
    int stages() const override { return 1; }
    NetImpl& stage(int /*index*/) override { return *this; }
    bool runs(int /*stage*/) const override { return true; }
    int stage_of_param(const std::string& /*name*/) const override { return 0; }
    int stage_of_gradient(const std::string& /*name*/) const override { return 0; }

    /// Returns the current plan. If there is none, makes it, and may drop another for it
    /// (NetOptions::max_plans).
    Built& built();
    /// Drops all plans and makes one that contains the solver's update.
    void attach_solver(const SolverOptions& solver);
    /// Adds a remark where the solver has a momentum that its kind does not use.
    void remark_momentum(const SolverOptions& solver);
    void reshape(std::int64_t batch, const std::map<std::string, Shape>& shapes) override;

    /// Throws Error(invalid_argument) for data that the input does not take: another size, null, a
    /// label that is not a class number, an index out of range; see Net::set_input.
    void check_input(const std::string& input, const void* data, std::uint64_t bytes);
    /// Feeds data to an input of the current plan, as many bytes as it has; see Net::set_input.
    void feed(const std::string& input, const void* data);
    /// The device memory for feeding inputs, which is not part of the plan's memory.
    std::uint64_t feed_bytes();

    void prepare() override { built(); }
    /// The input counts as set from this call on.
    Tensor input(const std::string& name) override;
    Tensor output(const std::string& name) override;
    void set_input(const std::string& name, const void* data, std::uint64_t bytes) override;
    void run_forward(std::string_view action) override;
    void run_backward() override;
    std::uint64_t planned_peak_bytes() override;
    std::vector<std::string> notes() override;
    /// The parameter counts as set from this call on.
    Tensor param(const std::string& name);
    /// Throws Error(invalid_argument) if a parameter has never been set. `action` is what needs it.
    void require_params(std::string_view action) const;
    /// The same for an input of the current plan.
    void require_inputs(std::string_view action);
    /// Throws Error(invalid_argument) if no forward has run in the current plan.
    void require_outputs(const std::string& name) override;
    /// Copies a parameter's values to the host. Allocates no device memory for them.
    void read_values(const std::string& name, std::vector<std::byte>& data);
    void params_changed();
    /// Sets the seed of dropout for the next forward run and later ones.
    void set_seed(std::uint64_t seed);
    /// Sets all parameters to the values of `source`, and keeps it to read released parameters
    /// again when they are needed. With `pack_now` these are read and packed at once, so that
    /// values that cannot be read are an error of this call. If it fails, the former source is
    /// restored, but parameters that were already filled keep the new values. The caller closes the
    /// source.
    void fill_from(std::shared_ptr<ParamSource> source, bool pack_now);
    void initialize(std::string_view method);
    /// The same of values from anywhere: filled in when there is a plan, which is not made for it.
    void set_source(std::shared_ptr<ParamSource> source);
    const std::shared_ptr<ParamSource>& source() const { return source_; }

    /// Enqueue without a flush. The caller flushes, because a step may consist of more commands.
    void forward();
    /// `after` as for Executor::run().
    void backward(const Executor::AfterStep& after = {});
    void run(Part part, const Executor::AfterStep& after = {});
    /// Runs the forward part again on the same inputs. Returns the operator of the description
    /// whose result is the first that is not finite, or an empty name if all are finite.
    std::string first_nan() override;
    /// Timings by step of one run of the current plan: of its forward part, or of all parts.
    /// Restores everything that is kept between runs, but backward() then needs another forward().
    std::vector<Executor::Timing> profile(bool whole_step);

    /// The precision of each operator: its own, or else the net's.
    std::map<std::string, Precision> precisions() const;

    std::vector<std::string> remarks, checkpoint_remarks;  ///< in addition to the plan's notes
    std::uint64_t step_count = 0;  ///< number of training forward runs; part of dropout's key

    /// Net::plan_memory().
    MemoryMap plan_memory(const SolverOptions* solver);
    /// The same of a rank of a team whose devices compute these shards.
    MemoryMap plan_memory(const SolverOptions& solver, const std::vector<ShardRange>& parts,
                          std::size_t rank);
    /// The plan of a solver's step, or of the net's own runs, without memory, also where it does
    /// not fit. Under a BuildsLater it may have launches, whose programs are not compiled.
    std::unique_ptr<Plan> plan_step(const SolverOptions* solver, bool launches = false) const;

  private:
    /// `before`: a plan of the same shapes, whose inputs and outputs the new plan uses. `apart`:
    /// each operator has launches of its own.
    std::unique_ptr<Built> make_built(const Built* before = nullptr, bool apart = false);
    /// Adds a remark where operators name devices, which a net on one device ignores.
    void remark_devices();
    /// Adds a remark where an Embedding reads indices of a float type.
    void remark_float_indices();
    /// Which gradients backward computes.
    DifferentiateOptions gradient_options(const Graph& graph) const;
    /// The graph that plans are made of: with gradients, and the update of a solver if given.
    Graph step_graph(Graph graph, const SolverOptions* solver) const;
    /// `first_fit`: only whether it fits counts, not what takes the least time.
    MemoryMap plan_memory_of(const NetOptions& options, const SolverOptions* solver, bool first_fit,
                             const std::vector<ShardRange>& parts = {}, std::size_t rank = 0) const;
    /// The error with the largest batch that fits, found by planning, in the place of an estimate.
    TooLarge with_largest_batch(const TooLarge& error) const;
    PlanOptions options_of_plans(bool apart) const;
    std::unique_ptr<Executor> make_executor(const Graph& graph, const PlanOptions& options);
    /// Binds tensors to the plan's inputs, outputs and gradients: those of `before` if it has them,
    /// else new ones.
    void bind_tensors(Built& built, const Built* before);
    /// Records where the plan keeps parameters, and gradients that are in a block.
    void find_params(Built& built);
    /// The operator of the description that the node comes from.
    std::string described(const std::string& node) const;
    /// Replaces the current plan after one of its engines has failed.
    void plan_anew();
    void pack();
    /// Lets the plan read the blocks of parameters that another of many nets has filled in.
    void find_blocks(Plan& plan) const;
    /// Lets others find the current plan's.
    void keep_blocks();
    /// What a block of parameters holds, by their identities and places; empty if it is none.
    std::string content_of(const Plan& plan, std::size_t block) const;
    std::string plan_key() const;
    /// The memory that a plan alone needs.
    static std::uint64_t own_bytes(const Built& plan);
    /// Drops the least recently used plans until there is room for one more
    /// (NetOptions::max_plans).
    void drop_plans();
    /// Drops all plans, if none is current. Returns whether there were any.
    bool drop_all_plans();
    Tensor fetch(const External& parameter) override;
    void done() override {
        if (source_) source_->close();
    }
    /// Copies the source's values to the parameter's memory.
    void fill(const std::string& name, Tensor tensor);
    /// Does so for all parameters that have memory.
    void fill_all();

    Context context_;
    std::function<NetDescription(const NetOptions&)> redescribe_;  ///< empty: it stays as it is
    std::optional<PartBorder> border_;                             ///< of a part of a larger net
    GivenMemory given_;
    bool among_many_ = false;
    KeptValues own_kept_;
    KeptValues* kept_ = &own_kept_;  ///< of this net, or of all that it is one of
    SharedSlabs slabs_;              ///< of the plans of inference
    int set_ = 0, sets_ = 1;         ///< the present working set, and how many there are
    std::optional<SolverOptions> solver_;
    BlockStore store_;
    std::map<std::string, std::unique_ptr<Built>> plans_;
    Built* current_ = nullptr;
    std::uint64_t uses_ = 0;  ///< how often another plan became current
    /// The source of parameter values; null until initialize() or load_weights().
    std::shared_ptr<ParamSource> source_;
    bool fill_later_ = false;  ///< fill parameters from the source when the next plan is made
    std::set<std::string> given_out_;  ///< parameters that param() has returned
    /// Parameters outside blocks that are in memory: those that steps read directly, and those that
    /// param() returned, because the caller may have changed them.
    std::map<std::string, Tensor> held_;
};

/// The network of a Net on one device, as a pointer that keeps it. Throws Error(invalid_argument)
/// for another.
std::shared_ptr<NetImpl> one_device(const Net& net);

}  // namespace dlprim
