// SPDX-License-Identifier: MIT
// PlacedSolver: a Solver for every part that has parameters to train. Their steps are one: all
// parts run forward and backward before the first of them is updated.
#include "api/placement/placed_checkpoint.hpp"
#include "api/placement/placed_solver_impl.hpp"
#include "api/solver_impl.hpp"
#include "base/text.hpp"
#include "graph/operator.hpp"
#include "runtime/access.hpp"
#include "runtime/context_impl.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

namespace dlprim {

namespace {

void check_norms(const PlacedNetImpl& net) {
    for (const Node& node : net.graph().nodes)
        require(node.op->type() != "BatchNorm" || !node.attrs.boolean("sync"), "[BatchNorm '",
                node.name,
                "'] takes statistics of all shards, with \"sync\", and the parts of a placed "
                "network have the shards one after the other");
}

bool has_scale(const SolverOptions& options, const PlacedNetImpl& net) {
    const std::vector<Node>& nodes = net.graph().nodes;
    return options.loss_scale != 0 && std::any_of(nodes.begin(), nodes.end(), [](const Node& node) {
               return node.precision == Precision::fp16;
           });
}

/// The loss scale belongs to the solver of a part.
void check_losses(const PlacedNetImpl& net) {
    for (const auto& [id, name] : net.graph().outputs)
        require(net.graph().losses.count(id) == 0 ||
                    net.cut().parts[static_cast<std::size_t>(net.output_part(name))].trains,
                "loss '", name,
                "' is made by a part of the network that trains no parameter, and so has no loss "
                "scale: set loss_scale to 0, let operators compute in bf16 in place "
                "of fp16, or give the loss the device of the operator before it");
}

void check(const SolverOptions& options, const PlacedNetImpl& net) {
    require(options.shards >= 1, "shards is ", options.shards, ": it must be at least 1");
    require(options.shards == 1 || options.accumulate == 1, "shards is ", options.shards,
            " and accumulate is ", options.accumulate,
            ": only one of them can be above 1; more shards in a larger batch do what both would");
    require(options.state_parts == 1,
            "a placed network keeps its whole state: state_parts must be 1");
    if (options.shards > 1) check_norms(net);
    if (has_scale(options, net)) check_losses(net);
}

}  // namespace

PlacedSolver::PlacedSolver(PlacedNet& net, const SolverOptions& options)
    : impl_(std::make_unique<PlacedSolverImpl>(Access::shared_impl(net), options)) {}

PlacedSolver::~PlacedSolver() = default;

PlacedSolverImpl::PlacedSolverImpl(std::shared_ptr<PlacedNetImpl> placed, const SolverOptions& how)
    : net(std::move(placed)), options(how), rate(how.learning_rate) {
    require(net != nullptr, "a solver needs a network, and this PlacedNet was moved from");
    require(net->options().mode == Mode::training && net->options().backward,
            "a solver needs a net in training mode, with the option backward");
    check(options, *net);
    net->train_with(options);
    open_solvers();
    if (options.shards > 1) pipeline_ = std::make_unique<Pipeline>(net, options.shards);
    if (!options.guard_loss) return;
    const Graph& graph = net->graph();
    for (const auto& [id, name] : graph.outputs)
        if (graph.losses.count(id) > 0) losses_.emplace_back(net->output(name));
}

void PlacedSolverImpl::open_solvers() {
    SolverOptions own = options;
    own.shards = 1;          // the pipeline cuts the batch
    own.guard_loss = false;  // losses are known before the update
    std::vector<SolverImpl*> all;
    for (std::size_t i = 0; i < net->cut().parts.size(); ++i) {
        if (!net->cut().parts[i].trains) continue;
        const int part = static_cast<int>(i);
        net->select(part, 0);
        parts_.push_back(part);
        solvers.push_back(std::make_unique<Solver>(net->part(part), own));
        all.push_back(&Access::impl(*solvers.back()));
    }
    if (net->cut().parts.size() > 1)
        totals_ = std::make_unique<GradientTotals>(std::move(all), options.clip_norm > 0,
                                                   has_scale(options, *net));
}

void PlacedSolver::step() {
    impl_->net->require_inputs("step()");
    impl_->step();
}

void PlacedSolverImpl::step() {
    if (pipeline_) {
        fed.push_back(net->inputs().next());
        if (fed.size() < static_cast<std::size_t>(options.shards)) return;
    }
    if (idle_ > 0) {
        fed.clear();
        ++idle_;
        return;
    }
    compute();
    if (losses_are_finite()) return update();
    restore_states();
    idle_ = 1;
}

void PlacedSolverImpl::compute() {
    if (options.guard_loss) keep_states();
    if (pipeline_) {
        pipeline_->run(std::exchange(fed, {}));
        read_losses();
        return;
    }
    net->forward();
    read_losses();
    net->backward();
}

void PlacedSolverImpl::keep_states() {
    random_steps_.clear();
    for (const int part : net->chain()) {
        NetImpl& own = Access::impl(net->part(part));
        random_steps_.push_back(own.step_count);
        if (!pipeline_) own.built().executor->keep_states(kept_slot);
    }
}

void PlacedSolverImpl::restore_states() {
    if (pipeline_) return pipeline_->restore_states();
    for (const int part : net->chain()) {
        NetImpl& own = Access::impl(net->part(part));
        own.built().executor->restore_states(kept_slot);
        Access::impl(own.context()).queue().flush();
    }
}

void PlacedSolverImpl::read_losses() {
    for (LateOutput& loss : losses_) loss.read();
}

bool PlacedSolverImpl::losses_are_finite() {
    TracePhases phases(net->trace().recorder(), 0, TraceRow::host);
    bool finite = true;
    for (LateOutput& loss : losses_) {
        phases.next(TraceKind::wait, "wait for the loss");
        for (const float value : loss.take()) finite = finite && std::isfinite(value);
    }
    return finite;
}

void PlacedSolverImpl::update() {
    bool is_due = false;
    for (const auto& solver : solvers) {
        SolverImpl& own = Access::impl(*solver);
        own.set_scalars();
        is_due = own.take_batch();
    }
    const PlacedTrace& trace = net->trace();
    if (is_due && totals_) {
        TracePhases phases(trace.recorder(), 0, TraceRow::host);
        phases.next(TraceKind::wait, "wait for all gradients");
        totals_->share();
    }
    for (std::size_t i = 0; i < solvers.size(); ++i) {
        SolverImpl& own = Access::impl(*solvers[i]);
        trace.mark(parts_[i], TraceKind::wait, "wait for the gradients");
        if (is_due) own.update();
        trace.mark(parts_[i], TraceKind::compute, "update");
        Access::impl(own.shared_net->context()).queue().flush();
    }
}

void PlacedSolver::call_off(int back) {
    impl_->call_off(back);
}

void PlacedSolverImpl::call_off(int back) {
    require(options.guard_loss, "call_off() needs a solver with guard_loss");
    require(back >= 1 && back == idle_, "call_off() undoes all steps from the first on whose loss ",
            "is not finite, which are ", idle_, ", and not ", back);
    idle_ = 0;
    fed.clear();
}

std::string PlacedSolverImpl::first_nan_of_shard(int shard) {
    for (std::size_t i = 0; i < random_steps_.size(); ++i)
        net->select(net->chain()[i], 0)
            .built()
            .executor->set_integer("@step", random_steps_[i] + static_cast<std::uint64_t>(shard));
    return net->first_nan();
}

Tensor PlacedSolver::output_of_batch(const std::string& name) {
    return impl_->output_of_batch(name);
}

Tensor PlacedSolverImpl::output_of_batch(const std::string& name) {
    const Graph& graph = net->graph();
    const bool is_loss =
        std::any_of(graph.outputs.begin(), graph.outputs.end(), [&](const auto& output) {
            return output.second == name && graph.losses.count(output.first) > 0;
        });
    return pipeline_ && !is_loss ? pipeline_->gather(name) : net->output(name);
}

void PlacedSolver::set_learning_rate(double rate) {
    for (const auto& solver : impl_->solvers) solver->set_learning_rate(rate);
    impl_->rate = rate;
}

double PlacedSolver::learning_rate() const {
    return impl_->rate;
}

std::uint64_t PlacedSolver::steps() const {
    return impl_->solvers.empty() ? 0 : impl_->solvers.front()->steps();
}

void PlacedSolver::use_averages() {
    for (const auto& solver : impl_->solvers) solver->use_averages();
}

PlacedTraining training_of(PlacedSolverImpl& solver) {
    PlacedTraining training{*solver.net, solver.options, solver.rate, solver.fed, {}};
    for (const auto& each : solver.solvers) training.solvers.push_back(&Access::impl(*each));
    return training;
}

}  // namespace dlprim
