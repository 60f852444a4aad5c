// SPDX-License-Identifier: MIT
// Solver: its calls, and the steps and step scalars of a net on one device.
#include <dlprim/solver.hpp>

#include "api/placement/placed_solver_impl.hpp"
#include "api/solver_impl.hpp"
#include "base/text.hpp"
#include "graph/operator.hpp"
#include "runtime/context_impl.hpp"
#include "train/update.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

namespace dlprim {

namespace {

void check_rate(double rate) {
    require(std::isfinite(rate) && rate >= 0, "learning rate ", rate,
            " is invalid: it must be a number of at least 0");
}

void check(const SolverOptions& o) {
    check_rate(o.learning_rate);
    const std::pair<const char*, double> shares[] = {
        {"momentum", o.momentum}, {"beta1", o.beta1}, {"beta2", o.beta2}, {"average", o.average}};
    for (const auto& [name, value] : shares)
        require(value >= 0 && value < 1, name, " is ", value,
                ": it must be a number of at least 0 and below 1");
    require(std::isfinite(o.weight_decay) && o.weight_decay >= 0, "weight_decay is ",
            o.weight_decay, ": it must be a number of at least 0");
    require(std::isfinite(o.epsilon) && o.epsilon > 0, "epsilon is ", o.epsilon,
            ": it must be a number above 0");
    require(!o.nesterov || o.momentum > 0, "nesterov needs a momentum above 0");
    require(o.accumulate >= 1, "accumulate must be at least 1");
    require(o.shards >= 1, "shards is ", o.shards, ": it must be at least 1");
    require(o.shards == 1 || o.accumulate == 1, "shards is ", o.shards, " and accumulate is ",
            o.accumulate,
            ": only one of them can be above 1; more shards in a larger batch do what both would");
    require(o.state_parts >= 1 && o.state_part >= 0 && o.state_part < o.state_parts,
            "there is no part ", o.state_part, " of ", o.state_parts, " parts of the state");
    require(o.state_parts == 1 || o.accumulate == 1,
            "a solver that accumulates batches keeps its whole state");
    require(o.clip_norm >= 0 && o.clip_value >= 0,
            "clip_norm and clip_value must not be negative; 0 does not clip");
    require(std::isfinite(o.loss_scale) && o.loss_scale >= 0 && o.loss_scale_steps >= 1,
            "loss_scale must be a number of at least 0, and loss_scale_steps at least 1");
}

/// The loss scale of the net, if it has one.
std::optional<Tensor> scale_of(NetImpl& net) {
    const Executor& executor = *net.built().executor;
    const ValueId id = executor.plan().graph.find(loss_scale_name);
    if (id == no_value) return std::nullopt;
    return executor.tensor(id);
}

/// Lets launches of a thread meet those of the other shards, while it lives.
class Meets {
  public:
    Meets(const Context& context, ShardMeeting* meeting) : context_(Access::impl(context)) {
        context_.set_meeting(meeting);
    }
    ~Meets() { context_.set_meeting(nullptr); }
    Meets(const Meets&) = delete;
    Meets& operator=(const Meets&) = delete;

  private:
    ContextImpl& context_;
};

/// The name of a batch norm that takes statistics of all shards; empty if none does.
std::string synchronous_norm(NetImpl& net) {
    for (const Node& node : net.built().executor->plan().graph.nodes)
        if (!node.removed && node.op->type() == "ShardSum") return node.attrs.text("what");
    return {};
}

}  // namespace

Solver::Solver(Net& net, const SolverOptions& options) {
    check(options);
    if (core_of(net).alone() != nullptr)
        impl_ = std::make_shared<SolverImpl>(one_device(net), options);
    else
        impl_ = std::make_shared<PlacedSolverImpl>(
            std::static_pointer_cast<PlacedNetImpl>(Access::shared_impl(net)), options);
}

SolverImpl::SolverImpl(std::shared_ptr<NetImpl> net, const SolverOptions& how)
    : SolverCore(how), shared_net(std::move(net)) {
    shared_net->attach_solver(options);
    shared_net->remark_momentum(options);
    sums.attach(*shared_net, options.shards);
    synchronous = synchronous_norm(*shared_net);
    if (std::optional<Tensor> scale = scale_of(*shared_net))
        scale->copy_from(std::vector<float>{static_cast<float>(options.loss_scale)});
}

Solver::~Solver() = default;

SolverCore& core_of(const Solver& solver) {
    return *Access::shared_impl(solver);
}

SolverImpl& Solver::impl() const {
    SolverImpl* const alone = impl_->alone();
    require(alone != nullptr, "this call is for the solver of a network on one device");
    return *alone;
}

const SolverOptions& Solver::options() const {
    return impl_->options;
}

void Solver::set_learning_rate(double rate) {
    impl_->set_rate(rate);
}

void SolverCore::set_rate(double value) {
    check_rate(value);
    rate = value;
    for (SolverImpl* const solver : solvers()) solver->rate = value;
}

double Solver::learning_rate() const {
    return impl_->rate;
}
std::uint64_t Solver::steps() const {
    return impl_->updates_so_far();
}

std::uint64_t SolverCore::updates_so_far() {
    const std::vector<SolverImpl*> all = solvers();
    return all.empty() ? 0 : all.front()->updates;
}

double Solver::loss_scale() {
    for (const SolverImpl* const solver : impl_->solvers())
        if (const std::optional<Tensor> scale = scale_of(*solver->shared_net))
            return scale->to_doubles().at(0);
    return 1;
}

void Solver::step() {
    impl_->step(nullptr);
}

bool Solver::step_if(const std::function<bool()>& proceed) {
    return impl_->step(proceed);
}

bool SolverImpl::step(const std::function<bool()>& proceed) {
    require(!proceed || sums.is_alone(),
            "step_if() is for one device: the others of the team would not know of its decision");
    require(options.state_parts == 1 || !sums.is_alone(),
            "a solver with a part of the state needs a team, which has the others");
    require(
        synchronous.empty() || meeting, "the ", synchronous,
        " are those of all shards, with \"sync\": each shard needs a rank of its own in a Team, "
        "and this solver computes ",
        options.shards, " shards one after the other");
    NetImpl& net = *shared_net;
    net.require_params("step()");
    net.require_inputs("step()");
    Executor& executor = *net.built().executor;
    set_scalars();
    const bool guards = options.guard_loss, sharded = sums.shards() > 1;
    if (sums.taken() == 0) {
        // A failing engine uses the first slot in the middle of a batch.
        batch_slot = guards || sharded ? slot() : 0;
        if (proceed || guards || sharded) executor.keep_states(batch_slot);
        present = {updates, batches, net.step_count};
    }
    if (sharded) net.step_count = present.random_step + static_cast<std::uint64_t>(sums.next());
    if (meeting) try_parts();
    const Meets meets(net.context(), meeting.get());
    mark(TraceKind::wait, "wait for input");
    net.forward();
    mark(TraceKind::compute, "forward");
    if (proceed && !proceed()) {
        net.built().executor->restore_states(batch_slot);  // running statistics
        if (sharded) {
            if (guards && sums.taken() > 0) --guarded;
            forget_shards();
        }
        Access::impl(net.context()).queue().flush();
        return false;
    }
    if (guards && sums.taken() == 0) before[guarded++ % before.size()] = present;
    for (const auto& [name, output] : outputs_)
        output.keep(net.built().outputs.at(name), sums.taken());
    net.backward(sums.watch(net));
    mark(TraceKind::compute, "backward");
    finish_shard();
    Access::impl(net.context()).queue().flush();
    return true;
}

void SolverImpl::set_scalars() {
    Executor& executor = *shared_net->built().executor;
    const auto t = static_cast<double>(updates + 1);
    executor.set_scalar("@lr", rate);
    executor.set_scalar("@correction1", 1 - std::pow(options.beta1, t));
    executor.set_scalar("@correction2", 1 - std::pow(options.beta2, t));
    if (options.average > 0) {
        const auto made = static_cast<double>(updates);
        const double keep = updates == 0 ? 0 : std::min(options.average, (1 + made) / (10 + made));
        executor.set_scalar("@average_share", 1 - keep);
    }
}

void SolverImpl::try_parts() {
    NetImpl& net = *shared_net;
    Executor& executor = *net.built().executor;
    if (executor.proven(Part::forward) && executor.proven(Part::backward)) return;
    const std::uint64_t random_step = net.step_count;
    net.forward();
    net.backward();
    net.built().executor->restore_states(batch_slot);
    net.step_count = random_step;
}

void SolverImpl::finish_shard() {
    NetImpl& net = *shared_net;
    if (!sums.add(net)) {
        net.built().executor->restore_states(batch_slot);  // each shard begins with the same ones
        mark(TraceKind::compute, "add sums");
        return;
    }
    if (sums.is_alone())
        mark(TraceKind::compute, "add sums");
    else
        mark(TraceKind::wait, "wait for means");
    if (sums.shards() > 1) forget_shards();
    if (take_batch()) update();
}

bool SolverImpl::take_batch() {
    if (options.accumulate > 1) shared_net->run(Part::accumulate);
    return ++batches == static_cast<std::uint64_t>(options.accumulate);
}

void SolverImpl::update() {
    NetImpl& net = *shared_net;
    net.run(Part::update);
    mark(TraceKind::compute, "update");
    if (options.state_parts > 1) {
        sums.share_parameters(net);
        mark(TraceKind::move, "share parameters");
    }
    batches = 0;
    ++updates;
}

void SolverImpl::forget_shards() {
    sums.restart();
    shared_net->step_count = present.random_step + static_cast<std::uint64_t>(sums.shards());
}

std::string SolverImpl::first_nan_of_shard(int shard) {
    shared_net->built().executor->set_integer(
        "@step", present.random_step + static_cast<std::uint64_t>(shard));
    return shared_net->first_nan();
}

Tensor Solver::output_of_batch(const std::string& name) {
    return impl_->output_of_batch(name);
}

Tensor SolverImpl::output_of_batch(const std::string& name) {
    Tensor of_shard = shared_net->output(name);
    if (sums.own() == 1 || shared_net->is_loss(name)) return of_shard;
    return outputs_.try_emplace(name, name, of_shard, sums.own()).first->second.whole();
}

std::map<std::string, Tensor> SolverCore::averages(Receivers receivers) {
    std::map<std::string, Tensor> all;
    for (SolverImpl* const solver : solvers()) all.merge(solver->own_averages(receivers));
    return all;
}

std::map<std::string, Tensor> SolverImpl::own_averages(Receivers receivers) {
    std::map<std::string, Tensor> all;
    const NetImpl::Built& built = shared_net->built();
    const Plan& plan = built.executor->plan();
    const ValueId id = plan.graph.find(average_name);
    if (id == no_value) return all;
    Tensor average = built.executor->tensor(id);
    if (options.state_parts > 1) {
        const std::vector<std::byte> whole = gather(average_name, receivers);
        if (whole.empty()) return all;
        average = Tensor(shared_net->context(),
                         Shape{static_cast<std::int64_t>(whole.size() / sizeof(float))});
        average.copy_from_host(whole.data(), whole.size());
    }
    for (const auto& [name, param] : built.params) {
        const Value& value = plan.graph.value(param);
        const Place& place = plan.places[static_cast<std::size_t>(param)];
        if (!value.trainable || place.kind != Place::Kind::block) continue;
        // The average has the parameters' offsets in their block.
        all.emplace(name, Access::tensor(shared_net->context(), Access::buffer(average),
                                         average.byte_offset() + place.offset, value.spec.shape,
                                         value.spec.dtype));
    }
    return all;
}

void Solver::use_averages() {
    impl_->use_averages();
}

void SolverCore::use_averages() {
    std::map<std::string, Tensor> values = averages(Receivers::all);
    require(!values.empty() && updates_so_far() > 0,
            "there are no averages: the solver needs the option average, and an update");
    std::vector<std::byte> data;
    for (auto& [name, average] : values) {
        data.resize(average.bytes());
        average.copy_to_host(data.data(), data.size());
        net()
            .stage(net().stage_of_param(name))
            .param(name)
            .copy_from_host(data.data(), data.size());
    }
    for (int i = 0; i < net().stages(); ++i) net().stage(i).params_changed();
}

void Solver::call_off(int back) {
    impl_->call_off(back);
}

void SolverImpl::call_off(int back) {
    const auto steps = static_cast<std::uint64_t>(back);
    require(options.guard_loss, "call_off() needs a solver with guard_loss");
    require(back >= 1 && steps <= std::min<std::uint64_t>(before.size(), guarded),
            "call_off() undoes one or two steps that were made, not ", back);
    guarded -= steps;
    const Before& then = before[guarded % before.size()];
    NetImpl& net = *shared_net;
    Executor& executor = *net.built().executor;
    executor.restore_states(slot());
    if (const ValueId guard = executor.plan().graph.find(loss_guard_name); guard != no_value)
        executor.tensor(guard).fill(0);
    updates = then.updates;
    batches = then.batches;
    present = then;
    forget_shards();
    executor.set_integer("@step", then.random_step);
    Access::impl(net.context()).queue().flush();
    guarded = 0;  // the other record belongs to a step that was undone
}

}  // namespace dlprim
