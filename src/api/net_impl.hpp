// SPDX-License-Identifier: MIT
// NetImpl: a network description, its parameters' memory, and the plans made of it, one for each
// set of input shapes. In inference large parameters have memory only while someone needs it.
#pragma once

#include "api/param_source.hpp"
#include "exec/executor.hpp"
#include "graph/description.hpp"
#include "runtime/transfer.hpp"

#include <dlprim/net.hpp>
#include <dlprim/solver.hpp>

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dlprim {

/// What options ask of a description: names extra outputs, gives operators their precisions.
/// Returns remarks. Throws Error(invalid_argument).
std::vector<std::string> apply_options(NetDescription& description, const NetOptions& options);
/// The graph of a description that apply_options() has seen, before any pass.
Graph build_graph(const NetDescription& description, const NetOptions& options);

class NetImpl : private ParamSupply {
  public:
    NetImpl(const Context& context, NetDescription description, const NetOptions& options);

    /// One plan and what is bound to it.
    struct Built {
        std::unique_ptr<Executor> executor;
        std::map<std::string, Tensor> inputs, outputs, output_gradients, gradients;
        std::map<std::string, ValueId> params;
        std::map<std::string, std::int64_t> classes;  ///< label inputs and their number of classes
        std::vector<std::pair<std::string, double>> losses;
        bool ran_forward = false;
        std::uint64_t last_use = 0;  ///< which of the net's plans became current before which
        std::map<std::string, std::unique_ptr<InputFeed>> feeds;  ///< of inputs that were set
    };

    /// What is known of a parameter before anything is planned.
    struct Param {
        Value value;
        int order = 0;
    };

    const Context& context() const { return context_; }
    const NetOptions& options() const { return options_; }
    const std::map<std::string, Param>& params() const { return params_; }
    std::vector<std::string> param_names() const;
    /// Throws Error(not_found) offering the nearest name.
    const TensorSpec& input_spec(const std::string& name) const;
    const TensorSpec& param_spec(const std::string& name) const;

    /// The current plan, made now if it has not been, for which another may be dropped
    /// (NetOptions::max_plans).
    Built& built();
    bool is_built() const { return current_ != nullptr; }
    /// Plans anew with a solver's update.
    void attach_solver(const SolverOptions& solver);
    void reshape(std::int64_t batch, const std::map<std::string, Shape>& shapes);

    /// Feeds an input of the current plan bytes of its size; see Net::set_input.
    void feed(const std::string& input, const void* data);
    /// Device memory that feeding the current plan's inputs takes, beyond the plan's.
    std::uint64_t feed_bytes();

    /// Counts as setting the parameter.
    Tensor param(const std::string& name);
    /// Throws Error(invalid_argument) where some parameter has never been set (Net::forward()):
    /// what `action` needs.
    void require_params(std::string_view action) const;
    /// A parameter's values on the host, without memory on the device for one that has none.
    void read_param(const std::string& name, std::vector<std::byte>& data);
    void params_changed();
    /// The seed of dropout from the next forward on.
    void set_seed(std::uint64_t seed);
    /// Gives all parameters the values of `source`, which is asked again when one is needed that
    /// was let go. `pack_now`: those that are let go are read and packed at once, so that what
    /// cannot be read shows. Where it fails, parameters that it was not asked for are as before.
    void fill_from(std::shared_ptr<ParamSource> source, bool pack_now);
    void initialize(std::string_view method);
    /// Whether large parameters are let go when they have been packed.
    bool lets_go() const;

    /// Enqueue without a flush, which is whoever's who knows what else belongs to the step.
    void forward();
    void backward();
    /// Where an engine fails at its first run, the net plans anew without it and goes on.
    void run(Part part);
    /// The step of the last forward's plan, run again on the same inputs, whose result is the first
    /// that is not finite: the name of an operator of the description; empty where all are finite.
    std::string first_nan();
    /// Timings of one run of the current plan's forward, or of all its parts, by step. Changes
    /// nothing that outlasts a run but that backward() needs another forward().
    std::vector<Executor::Timing> profile(bool whole_step);

    /// What each operator's products are computed in: its own precision, or the net's.
    std::map<std::string, Precision> precisions() const;

    std::vector<std::string> remarks, checkpoint_remarks;  ///< beside the plan's notes
    std::uint64_t step_count = 0;                          ///< training forwards done: keys dropout

    const Graph& base_graph() const { return base_; }
    /// Whether the plan is without losses (NetOptions::without_losses), which base_graph() still
    /// has.
    bool drops_losses() const {
        return options_.without_losses && base_.losses.size() < base_.outputs.size();
    }

  private:
    /// `before`: a plan of the same shapes, whose inputs and outputs the new one takes over.
    /// `apart`: every operator in launches of its own.
    std::unique_ptr<Built> make_built(const Built* before = nullptr, bool apart = false);
    /// Gives the new plan tensors for its inputs, outputs and gradients: those of `before` where it
    /// has them.
    void bind_tensors(Built& built, const Built* before);
    /// Notes where the plan has its parameters, and their gradients where those are in a block.
    void find_params(Built& built);
    /// Throws Error(invalid_argument) where parameters would have other shapes than they have.
    void check_params_stay(const Graph& graph) const;
    /// The operator of the description that a node was made of.
    std::string described(const std::string& node) const;
    /// Takes the place of the current plan, an engine of which has failed.
    void plan_anew();
    void pack();
    std::string plan_key() const;
    /// Leaves room for one more plan.
    void drop_plans();
    Tensor fetch(const External& parameter) override;
    void done() override {
        if (source_) source_->close();
    }
    /// The source's values, in the parameter's memory.
    void fill(const std::string& name, Tensor tensor);
    /// The same for all parameters that have memory.
    void fill_all();

    Context context_;
    NetDescription description_;
    NetOptions options_;
    std::optional<SolverOptions> solver_;
    Graph base_;  ///< as described, before any pass
    std::map<std::string, Param> params_;
    BlockStore store_;
    std::map<std::string, std::unique_ptr<Built>> plans_;
    Built* current_ = nullptr;
    std::uint64_t uses_ = 0;  ///< times that another plan became current
    /// Of the parameters' values; null until initialize() or load_weights().
    std::shared_ptr<ParamSource> source_;
    bool fill_later_ = false;  ///< the source's values go into parameters with the next plan
    std::set<std::string> given_out_;  ///< parameters that param() was asked for
    /// Of the parameters that no block holds, those that steps read as they are, and those that
    /// someone has asked for and may have changed.
    std::map<std::string, Tensor> held_;
};

}  // namespace dlprim
