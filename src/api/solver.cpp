// SPDX-License-Identifier: MIT
// Solver: steps, step scalars, checkpoints.
#include <dlprim/solver.hpp>

#include "api/checkpoint_record.hpp"
#include "api/net_impl.hpp"
#include "base/text.hpp"
#include "formats/hdf5_file.hpp"
#include "runtime/context_impl.hpp"
#include "train/update.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <tuple>
#include <utility>

namespace dlprim {

struct Solver::Impl {
    SolverOptions options;
    double rate;
    std::uint64_t updates = 0;
    std::uint64_t batches = 0;  ///< since the last update
    /// With a guard: the state before each of the last steps, by the step's number.
    struct Before {
        std::uint64_t updates, batches, random_step;
    };
    std::array<Before, 2> before{};
    std::uint64_t guarded = 0;  ///< number of steps that `before` has recorded
    static_assert(std::tuple_size_v<decltype(before)> < Executor::state_slots);
    std::size_t slot() const { return 1 + guarded % before.size(); }  ///< of the next step
};

namespace {

void check_rate(double rate) {
    require(std::isfinite(rate) && rate >= 0, "learning rate ", rate,
            " is invalid: it must be a number of at least 0");
}

void check(const SolverOptions& o) {
    check_rate(o.learning_rate);
    require(o.momentum >= 0 && o.weight_decay >= 0 && o.epsilon > 0,
            "momentum and weight decay must not be negative, epsilon must be positive");
    require(o.beta1 >= 0 && o.beta1 < 1 && o.beta2 >= 0 && o.beta2 < 1,
            "beta1 and beta2 must lie in [0, 1)");
    require(!o.nesterov || o.momentum > 0, "nesterov needs a momentum above 0");
    require(o.accumulate >= 1, "accumulate must be at least 1");
    require(o.clip_norm >= 0 && o.clip_value >= 0,
            "clip_norm and clip_value must not be negative; 0 does not clip");
    require(std::isfinite(o.loss_scale) && o.loss_scale >= 0 && o.loss_scale_steps >= 1,
            "loss_scale must be a number of at least 0, and loss_scale_steps at least 1");
}

bool kept_in_checkpoint(const Value& value) {
    return value.role == Role::state && value.name != loss_guard_name;
}

/// The loss scale of the net, if it has one.
std::optional<Tensor> scale_of(NetImpl& net) {
    const Executor& executor = *net.built().executor;
    const ValueId id = executor.plan().graph.find(loss_scale_name);
    if (id == no_value) return std::nullopt;
    return executor.tensor(id);
}

}  // namespace

Solver::Solver(Net& net, const SolverOptions& options) : impl_(std::make_unique<Impl>()) {
    check(options);
    impl_->options = options;
    impl_->rate = options.learning_rate;
    Access::impl(net).attach_solver(options);
    net_ = Access::shared_impl(net);
    if (std::optional<Tensor> scale = scale_of(*net_))
        scale->copy_from(std::vector<float>{static_cast<float>(options.loss_scale)});
}

Solver::~Solver() = default;

const SolverOptions& Solver::options() const {
    return impl_->options;
}

void Solver::set_learning_rate(double rate) {
    check_rate(rate);
    impl_->rate = rate;
}

double Solver::learning_rate() const {
    return impl_->rate;
}
std::uint64_t Solver::steps() const {
    return impl_->updates;
}

double Solver::loss_scale() {
    const std::optional<Tensor> scale = scale_of(*net_);
    if (!scale) return 1;
    float value = 0;
    scale->copy_to_host(&value, sizeof(value));
    return value;
}

void Solver::step() {
    step_if(nullptr);
}

bool Solver::step_if(const std::function<bool()>& proceed) {
    NetImpl& net = *net_;
    Executor& executor = *net.built().executor;
    const auto t = static_cast<double>(impl_->updates + 1);
    executor.set_scalar("@lr", impl_->rate);
    executor.set_scalar("@correction1", 1 - std::pow(impl_->options.beta1, t));
    executor.set_scalar("@correction2", 1 - std::pow(impl_->options.beta2, t));
    const bool guarded = impl_->options.guard_loss;
    const std::size_t slot = guarded ? impl_->slot() : 0;
    if (proceed || guarded) executor.keep_states(slot);
    const Impl::Before before{impl_->updates, impl_->batches, net.step_count};
    net.forward();
    if (proceed && !proceed()) {
        net.built().executor->restore_states(slot);  // running statistics
        Access::impl(net.context()).queue().flush();
        return false;
    }
    if (guarded) impl_->before[impl_->guarded++ % impl_->before.size()] = before;
    net.backward();
    if (impl_->options.accumulate > 1) net.run(Part::accumulate);
    if (++impl_->batches >= static_cast<std::uint64_t>(impl_->options.accumulate)) {
        net.run(Part::update);
        impl_->batches = 0;
        ++impl_->updates;
    }
    Access::impl(net.context()).queue().flush();
    return true;
}

void Solver::call_off(int back) {
    const auto steps = static_cast<std::uint64_t>(back);
    require(impl_->options.guard_loss, "call_off() needs a solver with guard_loss");
    require(back >= 1 && steps <= std::min<std::uint64_t>(impl_->before.size(), impl_->guarded),
            "call_off() undoes one or two steps that were made, not ", back);
    impl_->guarded -= steps;
    const Impl::Before& before = impl_->before[impl_->guarded % impl_->before.size()];
    NetImpl& net = *net_;
    Executor& executor = *net.built().executor;
    executor.restore_states(impl_->slot());
    if (const ValueId guard = executor.plan().graph.find(loss_guard_name); guard != no_value)
        executor.tensor(guard).fill(0);
    impl_->updates = before.updates;
    impl_->batches = before.batches;
    net.step_count = before.random_step + 1;
    executor.set_integer("@step", before.random_step);
    Access::impl(net.context()).queue().flush();
    impl_->guarded = 0;  // the other record belongs to a step that was undone
}

void Solver::save_checkpoint(const std::string& path, const std::map<std::string, double>& extra) {
    NetImpl& net = *net_;
    net.require_params("save_checkpoint()");
    const Executor& executor = *net.built().executor;
    Hdf5Writer file(path);
    std::vector<std::byte> data;
    const auto write = [&](const std::string& name, const Tensor& tensor) {
        data.resize(tensor.bytes());
        tensor.copy_to_host(data.data(), data.size());
        file.write(name, tensor.shape(), tensor.dtype(), data.data());
    };
    for (const std::string& name : net.param_names()) write(name, net.param(name));
    const Graph& graph = executor.plan().graph;
    for (std::size_t i = 0; i < graph.values.size(); ++i)
        if (kept_in_checkpoint(graph.values[i]))
            write("solver/" + graph.values[i].name, executor.tensor(static_cast<ValueId>(i)));
    write_record(file, record_of(net));
    file.attribute("", "solver_updates", static_cast<std::int64_t>(impl_->updates));
    file.attribute("", "solver_batches", static_cast<std::int64_t>(impl_->batches));
    file.attribute("", "random_step", static_cast<std::int64_t>(net.step_count));
    file.attribute("", "random_seed", static_cast<std::int64_t>(net.options().seed));
    file.attribute("", "learning_rate", impl_->rate);
    Strings names;
    Doubles values;
    for (const auto& [name, value] : extra) {
        require(!name.empty() && name.find(',') == std::string::npos,
                "a checkpoint's number cannot be called '", name,
                "': names are not empty and hold no comma");
        names.push_back(name);
        values.push_back(value);
    }
    for (std::size_t i = 0; i < names.size(); ++i)
        file.attribute("", "extra_" + names[i], values[i]);
    if (!names.empty()) file.attribute("", "extra_names", join(names, ","));
    file.commit();
}

std::map<std::string, double> Solver::load_checkpoint(const std::string& path) {
    NetImpl& net = *net_;
    const Hdf5Reader file(path);
    const auto integer = [&](const char* name) {
        const auto value = file.attribute("", name);
        const auto* found = value ? std::get_if<std::int64_t>(&*value) : nullptr;
        if (found == nullptr || *found < 0)
            fail(ErrorKind::format, "'", path, "' is not a checkpoint: it has no attribute '", name,
                 "'; weights alone are loaded with load_weights()");
        return static_cast<std::uint64_t>(*found);
    };
    const std::uint64_t updates = integer("solver_updates"), batches = integer("solver_batches");
    const std::uint64_t random_step = integer("random_step");
    const auto seed = file.attribute("", "random_seed"),
               learning_rate = file.attribute("", "learning_rate");
    const CheckpointRecord made = read_record(file), now = record_of(net);
    check_precision(path, made, now);
    std::vector<std::string> remarks = other_engines(path, made, now);
    const Executor& executor = *net.built().executor;
    const Graph& graph = executor.plan().graph;
    const std::string scale = cat("solver/", loss_scale_name);
    if (const bool scales = graph.find(loss_scale_name) != no_value; file.has(scale) != scales) {
        if (scales)
            fail(ErrorKind::format, "'", path,
                 "' holds no loss scale, which this solver has for precision fp16: it was trained "
                 "in another precision, or with a loss_scale of 0");
        remarks.push_back(
            cat("'", path,
                "' holds a loss scale, for precision fp16, which this solver does not have"));
    }
    std::vector<std::pair<std::string, Tensor>> states;
    for (std::size_t i = 0; i < graph.values.size(); ++i) {
        if (!kept_in_checkpoint(graph.values[i])) continue;
        const std::string name = "solver/" + graph.values[i].name;
        const Tensor tensor = executor.tensor(static_cast<ValueId>(i));
        const Hdf5Dataset& dataset = file.info(name);
        if (dataset.shape != tensor.shape())
            fail(ErrorKind::format, "'", name, "' has shape ", dataset.shape.str(), " in '", path,
                 "', this solver expects ", tensor.shape().str());
        states.emplace_back(name, tensor);
    }
    Access::handle<Net>(net_).load_weights(path);
    std::vector<std::byte> data;
    for (auto& [name, tensor] : states) {
        data.resize(tensor.bytes());
        file.read(name, tensor.dtype(), data.data(), data.size());
        tensor.copy_from_host(data.data(), data.size());
    }
    net.checkpoint_remarks = std::move(remarks);
    impl_->updates = updates;
    impl_->batches = batches;
    net.step_count = random_step;
    if (seed && std::holds_alternative<std::int64_t>(*seed))
        net.set_seed(static_cast<std::uint64_t>(std::get<std::int64_t>(*seed)));
    if (learning_rate && std::holds_alternative<double>(*learning_rate))
        impl_->rate = std::get<double>(*learning_rate);

    std::map<std::string, double> extra;
    if (const auto names = file.attribute("", "extra_names");
        names && std::holds_alternative<std::string>(*names)) {
        for (const std::string& name : split(std::get<std::string>(*names), ',')) {
            const auto value = file.attribute("", "extra_" + name);
            if (value && std::holds_alternative<double>(*value))
                extra[name] = std::get<double>(*value);
        }
    }
    return extra;
}

}  // namespace dlprim
