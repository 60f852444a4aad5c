// SPDX-License-Identifier: MIT
// PlacedSolverImpl: what it refuses, and its steps.
#include "api/placement/placed_solver_impl.hpp"
#include "base/text.hpp"
#include "graph/operator.hpp"
#include "runtime/context_impl.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

namespace dlprim {

namespace {

void check_norms(const PlacedNetImpl& net) {
    for (const Node& node : net.base_graph().nodes)
        require(node.op->type() != "BatchNorm" || !node.attrs.boolean("sync"), "[BatchNorm '",
                node.name,
                "'] takes statistics of all shards, with \"sync\", and the parts of a placed "
                "network have the shards one after the other");
}

bool has_scale(const SolverOptions& options, const PlacedNetImpl& net) {
    const std::vector<Node>& nodes = net.base_graph().nodes;
    return options.loss_scale != 0 && std::any_of(nodes.begin(), nodes.end(), [](const Node& node) {
               return node.precision == Precision::fp16;
           });
}

/// The loss scale belongs to the solver of a part.
void check_losses(const PlacedNetImpl& net) {
    for (const auto& [id, name] : net.base_graph().outputs)
        require(net.base_graph().losses.count(id) == 0 ||
                    net.cut().parts[static_cast<std::size_t>(net.stage_of_output(name))].trains,
                "loss '", name,
                "' is made by a part of the network that trains no parameter, and so has no loss "
                "scale: set loss_scale to 0, let operators compute in bf16 in place "
                "of fp16, or give the loss the device of the operator before it");
}

void check(const SolverOptions& options, const PlacedNetImpl& net) {
    require(options.state_parts == 1,
            "a placed network keeps its whole state: state_parts must be 1");
    if (options.shards > 1) check_norms(net);
    if (has_scale(options, net)) check_losses(net);
}

}  // namespace

PlacedSolverImpl::PlacedSolverImpl(std::shared_ptr<PlacedNetImpl> placed, const SolverOptions& how)
    : SolverCore(how), net_(std::move(placed)) {
    require(net_->options().mode == Mode::training && net_->options().backward,
            "a solver needs a net in training mode, with the option backward");
    check(options, *net_);
    net_->train_with(options);
    open_solvers();
    if (options.shards > 1) pipeline_ = std::make_unique<Pipeline>(net_, options.shards);
    if (!options.guard_loss) return;
    const Graph& graph = net_->base_graph();
    for (const auto& [id, name] : graph.outputs)
        if (graph.losses.count(id) > 0) losses_.emplace_back(net_->output(name));
}

void PlacedSolverImpl::open_solvers() {
    SolverOptions own = options;
    own.shards = 1;          // the pipeline cuts the batch
    own.guard_loss = false;  // losses are known before the update
    std::vector<SolverImpl*> all;
    for (std::size_t i = 0; i < net_->cut().parts.size(); ++i) {
        if (!net_->cut().parts[i].trains) continue;
        const int part = static_cast<int>(i);
        net_->select(part, 0);
        parts_.push_back(part);
        solvers_.push_back(std::make_unique<SolverImpl>(net_->shared_stage(part), own));
        all.push_back(solvers_.back().get());
    }
    if (net_->cut().parts.size() > 1)
        totals_ = std::make_unique<GradientTotals>(std::move(all), options.clip_norm > 0,
                                                   has_scale(options, *net_));
}

bool PlacedSolverImpl::step(const std::function<bool()>& proceed) {
    require(!proceed,
            "step_if() is for a network on one device: with guard_loss, step() and "
            "call_off() do the same where operators are on several");
    net_->require_inputs("step()");
    if (pipeline_) {
        fed_.push_back(net_->inputs().next());
        if (taken() < options.shards) return true;
    }
    if (idle_ > 0) {
        fed_.clear();
        ++idle_;
        return true;
    }
    compute();
    if (losses_are_finite()) {
        update();
        return true;
    }
    restore_states();
    idle_ = 1;
    return true;
}

void PlacedSolverImpl::compute() {
    if (options.guard_loss) keep_states();
    if (pipeline_) {
        pipeline_->run(std::exchange(fed_, {}));
        read_losses();
        return;
    }
    net_->run_forward("step()");
    read_losses();
    net_->run_backward();
}

void PlacedSolverImpl::keep_states() {
    random_steps_.clear();
    for (const int part : net_->chain()) {
        NetImpl& own = net_->stage(part);
        random_steps_.push_back(own.step_count);
        if (!pipeline_) own.built().executor->keep_states(kept_slot);
    }
}

void PlacedSolverImpl::restore_states() {
    if (pipeline_) return pipeline_->restore_states();
    for (const int part : net_->chain()) {
        NetImpl& own = net_->stage(part);
        own.built().executor->restore_states(kept_slot);
        Access::impl(own.context()).queue().flush();
    }
}

void PlacedSolverImpl::read_losses() {
    for (LateOutput& loss : losses_) loss.read();
}

bool PlacedSolverImpl::losses_are_finite() {
    TracePhases phases(net_->trace().recorder(), 0, TraceRow::host);
    bool finite = true;
    for (LateOutput& loss : losses_) {
        phases.next(TraceKind::wait, "wait for the loss");
        for (const float value : loss.take()) finite = finite && std::isfinite(value);
    }
    return finite;
}

void PlacedSolverImpl::update() {
    bool is_due = false;
    for (const auto& solver : solvers_) {
        solver->set_scalars();
        is_due = solver->take_batch();
    }
    const PlacedTrace& trace = net_->trace();
    if (is_due && totals_) {
        TracePhases phases(trace.recorder(), 0, TraceRow::host);
        phases.next(TraceKind::wait, "wait for all gradients");
        totals_->share();
    }
    for (std::size_t i = 0; i < solvers_.size(); ++i) {
        SolverImpl& own = *solvers_[i];
        trace.mark(parts_[i], TraceKind::wait, "wait for the gradients");
        if (is_due) own.update();
        trace.mark(parts_[i], TraceKind::compute, "update");
        Access::impl(own.shared_net->context()).queue().flush();
    }
}

void PlacedSolverImpl::call_off(int back) {
    require(options.guard_loss, "call_off() needs a solver with guard_loss");
    require(back >= 1 && back == idle_, "call_off() undoes all steps from the first on whose loss ",
            "is not finite, which are ", idle_, ", and not ", back);
    idle_ = 0;
    fed_.clear();
}

std::string PlacedSolverImpl::first_nan_of_shard(int shard) {
    for (std::size_t i = 0; i < random_steps_.size(); ++i)
        net_->select(net_->chain()[i], 0)
            .built()
            .executor->set_integer("@step", random_steps_[i] + static_cast<std::uint64_t>(shard));
    return net_->first_nan();
}

Tensor PlacedSolverImpl::output_of_batch(const std::string& name) {
    return pipeline_ && !net_->is_loss(name) ? pipeline_->gather(name) : net_->output(name);
}

std::vector<SolverImpl*> PlacedSolverImpl::solvers() {
    std::vector<SolverImpl*> all;
    for (const auto& solver : solvers_) all.push_back(solver.get());
    return all;
}

}  // namespace dlprim
