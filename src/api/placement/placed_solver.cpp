// SPDX-License-Identifier: MIT
// PlacedSolver: a Solver for every part that has parameters to train. Their steps are one: all
// parts run forward and backward before the first of them is updated.
#include "api/placement/gradient_totals.hpp"
#include "api/placement/pipeline.hpp"
#include "api/placement/placed_checkpoint.hpp"
#include "api/placement/placed_net_impl.hpp"
#include "api/solver_impl.hpp"
#include "base/text.hpp"
#include "graph/operator.hpp"
#include "runtime/access.hpp"
#include "runtime/context_impl.hpp"

#include <dlprim/solver.hpp>

#include <algorithm>
#include <memory>
#include <vector>

namespace dlprim {

class PlacedSolverImpl {
  public:
    std::shared_ptr<PlacedNetImpl> net;
    SolverOptions options;
    double rate = 0;
    std::vector<std::unique_ptr<Solver>> solvers;
    std::unique_ptr<GradientTotals> totals;  ///< with several parts
    std::unique_ptr<Pipeline> pipeline;      ///< with several shards
    std::vector<ShardInputs::Shard> fed;     ///< then: what the shards of the present batch read

    void step();
    void update();
};

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
                "scale: set SolverOptions::loss_scale to 0, let operators compute in bf16 in place "
                "of fp16, or give the loss the device of the operator before it");
}

void check(const SolverOptions& options, const PlacedNetImpl& net) {
    require(options.shards >= 1, "shards is ", options.shards, ": it must be at least 1");
    require(options.shards == 1 || options.accumulate == 1, "shards is ", options.shards,
            " and accumulate is ", options.accumulate,
            ": only one of them can be above 1; more shards in a larger batch do what both would");
    require(options.state_parts == 1,
            "a placed network keeps its whole state: state_parts must be 1");
    require(!options.guard_loss,
            "guard_loss is not for placed networks: a part does not know the "
            "loss of another one");
    if (options.shards > 1) check_norms(net);
    if (has_scale(options, net)) check_losses(net);
}

}  // namespace

PlacedSolver::PlacedSolver(PlacedNet& net, const SolverOptions& options)
    : impl_(std::make_unique<PlacedSolverImpl>()) {
    impl_->net = Access::shared_impl(net);
    require(impl_->net != nullptr, "a solver needs a network, and this PlacedNet was moved from");
    require(impl_->net->options().mode == Mode::training && impl_->net->options().backward,
            "a solver needs a net in training mode, with NetOptions::backward");
    check(options, *impl_->net);
    impl_->options = options;
    impl_->rate = options.learning_rate;
    impl_->net->train_with(options);
    SolverOptions own = options;
    own.shards = 1;  // the pipeline cuts the batch
    std::vector<SolverImpl*> all;
    for (std::size_t i = 0; i < impl_->net->cut().parts.size(); ++i) {
        if (!impl_->net->cut().parts[i].trains) continue;
        impl_->net->select(static_cast<int>(i), 0);
        Net& part = impl_->net->part(static_cast<int>(i));
        impl_->solvers.push_back(std::make_unique<Solver>(part, own));
        all.push_back(&Access::impl(*impl_->solvers.back()));
    }
    if (impl_->net->cut().parts.size() > 1)
        impl_->totals = std::make_unique<GradientTotals>(std::move(all), options.clip_norm > 0,
                                                         has_scale(options, *impl_->net));
    if (options.shards > 1)
        impl_->pipeline = std::make_unique<Pipeline>(impl_->net, options.shards);
}

PlacedSolver::~PlacedSolver() = default;

void PlacedSolver::step() {
    impl_->step();
}

void PlacedSolverImpl::step() {
    if (pipeline) {
        fed.push_back(net->inputs().next());
        if (fed.size() < static_cast<std::size_t>(options.shards)) return;
        pipeline->run(std::exchange(fed, {}));
    } else {
        net->forward();
        net->backward();
    }
    update();
}

void PlacedSolverImpl::update() {
    bool is_due = false;
    for (const auto& solver : solvers) {
        SolverImpl& own = Access::impl(*solver);
        own.set_scalars();
        is_due = own.take_batch();
    }
    if (is_due && totals) totals->share();
    for (const auto& solver : solvers) {
        SolverImpl& own = Access::impl(*solver);
        if (is_due) own.update();
        Access::impl(own.shared_net->context()).queue().flush();
    }
}

Tensor PlacedSolver::output_of_batch(const std::string& name) {
    const PlacedNetImpl& net = *impl_->net;
    const auto& outputs = net.graph().outputs;
    const auto found = std::find_if(outputs.begin(), outputs.end(),
                                    [&](const auto& output) { return output.second == name; });
    const bool is_loss = found != outputs.end() && net.graph().losses.count(found->first) > 0;
    if (impl_->pipeline && !is_loss) return impl_->pipeline->gather(name);
    return impl_->net->part(net.output_part(name)).output(name);
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
    PlacedTraining training{*solver.net, solver.options, solver.rate, solver.fed.size(), {}};
    for (const auto& each : solver.solvers) training.solvers.push_back(&Access::impl(*each));
    return training;
}

}  // namespace dlprim
