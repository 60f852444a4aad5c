// SPDX-License-Identifier: MIT
// Solver: checkpoints.
#include "api/checkpoint_record.hpp"
#include "api/solver_impl.hpp"
#include "base/text.hpp"
#include "runtime/context_impl.hpp"
#include "train/update.hpp"

#include <dlprim/solver.hpp>

#include <optional>
#include <utility>
#include <variant>

namespace dlprim {

namespace {

bool kept_in_checkpoint(const Value& value) {
    return value.role == Role::state && value.name != loss_guard_name;
}

/// Checkpoints hold whole states, also of solvers that keep a part of each.
Shape shape_in_checkpoint(const Graph& graph, const Value& value) {
    return value.part_begin < 0 ? value.spec.shape : Shape{graph.block_elements()};
}

/// Another number of shards would add up in another order, and draw other random numbers.
void check_shards(const Hdf5Reader& file, int shards) {
    const auto value = file.attribute("", "shards");
    const auto* const found = value ? std::get_if<std::int64_t>(&*value) : nullptr;
    const std::int64_t made = found != nullptr ? *found : 1;
    if (made != shards)
        fail(ErrorKind::invalid_argument, "'", file.path(), "' was made with shards ", made,
             ", and this solver has shards ", shards,
             ": go on with the same number, or begin anew with its weights");
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
    file.attribute("", "solver_updates", static_cast<std::int64_t>(updates));
    file.attribute("", "solver_batches", static_cast<std::int64_t>(batches));
    if (options.shards > 1) file.attribute("", "shards", static_cast<std::int64_t>(options.shards));
    if (sums.is_in_any_order()) file.attribute("", "order", std::string("any"));
    file.attribute("", "random_step", static_cast<std::int64_t>(net.step_count));
    file.attribute("", "random_seed", static_cast<std::int64_t>(net.options().seed));
    file.attribute("", "learning_rate", rate);
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
}

std::map<std::string, double> SolverImpl::read_checkpoint(const Hdf5Reader& file) {
    NetImpl& net = *shared_net;
    const std::string& path = file.path();
    const auto integer = [&](const char* name) {
        const auto value = file.attribute("", name);
        const auto* found = value ? std::get_if<std::int64_t>(&*value) : nullptr;
        if (found == nullptr || *found < 0)
            fail(ErrorKind::format, "'", path, "' is not a checkpoint: it has no attribute '", name,
                 "'; weights alone are loaded with load_weights()");
        return static_cast<std::uint64_t>(*found);
    };
    const std::uint64_t saved_updates = integer("solver_updates"),
                        saved_batches = integer("solver_batches");
    const std::uint64_t random_step = integer("random_step");
    const auto seed = file.attribute("", "random_seed"),
               learning_rate = file.attribute("", "learning_rate");
    check_shards(file, options.shards);
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
    updates = saved_updates;
    batches = saved_batches;
    net.step_count = random_step;
    if (seed && std::holds_alternative<std::int64_t>(*seed))
        net.set_seed(static_cast<std::uint64_t>(std::get<std::int64_t>(*seed)));
    if (learning_rate && std::holds_alternative<double>(*learning_rate))
        rate = std::get<double>(*learning_rate);

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
