// SPDX-License-Identifier: MIT
// PlacedSolver: a Solver for every part that has parameters to train. Their steps are one: all
// parts run forward and backward before the first of them is updated.
#include "api/placement/placed_checkpoint.hpp"
#include "api/placement/placed_net_impl.hpp"
#include "api/solver_impl.hpp"
#include "base/text.hpp"
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
};

namespace {

void check(const SolverOptions& options, const PlacedNetImpl& net) {
    require(options.shards == 1 && options.state_parts == 1,
            "a placed network trains on whole batches: shards and state_parts must be 1");
    require(!options.guard_loss,
            "guard_loss is not for placed networks: a part does not know the "
            "loss of another one");
    if (net.cut().parts.size() == 1) return;
    require(options.clip_norm == 0,
            "clip_norm is not for placed networks: the norm is that of all "
            "gradients, and each device knows its own; clip_value works");
    const std::vector<Node>& nodes = net.graph().nodes;
    const bool scales = std::any_of(nodes.begin(), nodes.end(), [](const Node& node) {
        return node.precision == Precision::fp16;
    });
    require(!scales || options.loss_scale == 0,
            "a placed network has no loss scale: set SolverOptions::loss_scale to 0, or let "
            "operators compute in bf16 in place of fp16");
}

}  // namespace

PlacedSolver::PlacedSolver(PlacedNet& net, const SolverOptions& options)
    : impl_(std::make_unique<PlacedSolverImpl>()) {
    impl_->net = Access::shared_impl(net);
    require(impl_->net != nullptr, "a solver needs a network, and this PlacedNet was moved from");
    require(impl_->net->options().mode == Mode::training && impl_->net->options().backward,
            "a solver needs a net in training mode, with NetOptions::backward");
    check(options, *impl_->net);
    impl_->net->check_memory(&options);
    impl_->options = options;
    impl_->rate = options.learning_rate;
    for (std::size_t i = 0; i < impl_->net->cut().parts.size(); ++i) {
        if (!impl_->net->cut().parts[i].trains) continue;
        Net& part = impl_->net->part(static_cast<int>(i));
        impl_->solvers.push_back(std::make_unique<Solver>(part, options));
    }
}

PlacedSolver::~PlacedSolver() = default;

void PlacedSolver::step() {
    for (const auto& solver : impl_->solvers) Access::impl(*solver).set_scalars();
    impl_->net->forward();
    impl_->net->backward();
    for (const auto& solver : impl_->solvers) {
        SolverImpl& own = Access::impl(*solver);
        own.finish_shard();
        Access::impl(own.shared_net->context()).queue().flush();
    }
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
    PlacedTraining training{*solver.net, solver.options, solver.rate, {}};
    for (const auto& each : solver.solvers) training.solvers.push_back(&Access::impl(*each));
    return training;
}

}  // namespace dlprim
