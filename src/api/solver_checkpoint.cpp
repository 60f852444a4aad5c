// SPDX-License-Identifier: MIT
// Solver: checkpoints.
#include "api/checkpoint_progress.hpp"
#include "api/checkpoint_record.hpp"
#include "api/solver_impl.hpp"
#include "base/text.hpp"
#include "runtime/context_impl.hpp"
#include "train/update.hpp"

#include <dlprim/solver.hpp>

#include <utility>

namespace dlprim {

namespace {

bool kept_in_checkpoint(const Value& value) {
    return value.role == Role::state && value.name != loss_guard_name;
}

/// Checkpoints hold whole states, also of solvers that keep a part of each.
Shape shape_in_checkpoint(const Graph& graph, const Value& value) {
    return value.part_begin < 0 ? value.spec.shape : Shape{graph.block_elements()};
}

}  // namespace

void Solver::save_checkpoint(const std::string& path, const std::map<std::string, double>& extra) {
    if (!impl_->gather_states()) return;
    Hdf5Writer file(path);
    impl_->write_checkpoint(file, extra);
    file.commit();
}

std::map<std::string, double> Solver::load_checkpoint(const std::string& path) {
    return impl_->read_checkpoint(Hdf5Reader(path));
}

void SolverImpl::write_checkpoint(Hdf5Writer& file, const std::map<std::string, double>& extra) {
    NetImpl& net = *shared_net;
    net.require_params("save_checkpoint()");
    require(sums.taken() == 0, "save_checkpoint() in the middle of a batch, after ", sums.taken(),
            " of its ", sums.shards(), " shards: save between batches");
    const Executor& executor = *net.built().executor;
    std::vector<std::byte> data;
    const auto write = [&](const std::string& name, const Tensor& tensor) {
        data.resize(tensor.bytes());
        tensor.copy_to_host(data.data(), data.size());
        file.write(name, tensor.shape(), tensor.dtype(), data.data());
    };
    for (const std::string& name : net.param_names()) write(name, net.param(name));
    const Graph& graph = executor.plan().graph;
    for (std::size_t i = 0; i < graph.values.size(); ++i)
        if (kept_in_checkpoint(graph.values[i])) {
            const std::string& name = graph.values[i].name;
            if (graph.values[i].part_begin < 0) {
                write("solver/" + name, executor.tensor(static_cast<ValueId>(i)));
                continue;
            }
            data = whole_state(name);
            file.write("solver/" + name, shape_in_checkpoint(graph, graph.values[i]),
                       graph.values[i].spec.dtype, data.data());
        }
    write_record(file, record_of(net));
    write_progress(
        file, {updates, batches, net.step_count, options.shards, net.options().seed, rate, extra});
    if (sums.is_in_any_order()) file.attribute("", "order", std::string("any"));
}

std::map<std::string, double> SolverImpl::read_checkpoint(const Hdf5Reader& file) {
    NetImpl& net = *shared_net;
    const std::string& path = file.path();
    const CheckpointProgress progress = read_progress(file);
    check_shards(file, progress, options.shards);
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
    std::vector<std::string> states;
    for (std::size_t i = 0; i < graph.values.size(); ++i) {
        if (!kept_in_checkpoint(graph.values[i])) continue;
        const std::string name = "solver/" + graph.values[i].name;
        const Shape shape = shape_in_checkpoint(graph, graph.values[i]);
        const Hdf5Dataset& dataset = file.info(name);
        if (dataset.shape != shape)
            fail(ErrorKind::format, "'", name, "' has shape ", dataset.shape.str(), " in '", path,
                 "', this solver expects ", shape.str());
        states.push_back(graph.values[i].name);
    }
    Access::handle<Net>(shared_net).load_weights(path);
    std::vector<std::byte> data;
    for (const std::string& name : states) {
        const ValueId id = graph.find(name);
        const Value& value = graph.value(id);
        const Shape shape = shape_in_checkpoint(graph, value);
        data.resize(static_cast<std::size_t>(shape.numel()) * size_of(value.spec.dtype));
        file.read("solver/" + name, value.spec.dtype, data.data(), data.size());
        if (value.part_begin >= 0)
            scatter(name, data);
        else
            executor.tensor(id).copy_from_host(data.data(), data.size());
    }
    net.checkpoint_remarks = std::move(remarks);
    sums.restart();
    updates = progress.updates;
    batches = progress.batches;
    net.step_count = progress.random_step;
    if (progress.seed) net.set_seed(*progress.seed);
    rate = progress.rate.value_or(rate);
    return progress.extra;
}

}  // namespace dlprim
