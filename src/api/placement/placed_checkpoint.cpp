// SPDX-License-Identifier: MIT
// Checkpoints of a placed network.
#include "api/placement/placed_checkpoint.hpp"

#include "api/checkpoint_progress.hpp"
#include "api/checkpoint_record.hpp"
#include "api/placement/placed_net_impl.hpp"
#include "base/text.hpp"
#include "train/update.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace dlprim {

namespace {

const Graph& graph_of(const SolverImpl& solver) {
    return solver.shared_net->built().executor->plan().graph;
}

bool is_of_parameters(const Graph& graph, const Value& state) {
    return state.spec.shape == Shape{graph.block_elements()};
}

/// The solver states that checkpoints hold, by name, with the parts that have them.
std::map<std::string, std::vector<SolverImpl*>> states_of(const PlacedTraining& training) {
    std::map<std::string, std::vector<SolverImpl*>> states;
    for (SolverImpl* const solver : training.solvers)
        for (const Value& value : graph_of(*solver).values)
            if (value.role == Role::state && value.name != loss_guard_name)
                states[value.name].push_back(solver);
    return states;
}

/// Where the pieces of a state lie: bytes in the whole network's and in a part's.
struct Piece {
    std::uint64_t whole = 0, part = 0, bytes = 0;
};

std::vector<Piece> pieces_of(const Graph& whole, const Graph& part) {
    std::map<std::string, std::int64_t> offsets;
    for (const auto& [id, offset] : whole.block_offsets()) offsets[whole.value(id).name] = offset;
    std::vector<Piece> pieces;
    for (const auto& [id, offset] : part.block_offsets())
        pieces.push_back({static_cast<std::uint64_t>(offsets.at(part.value(id).name)) * 4,
                          static_cast<std::uint64_t>(offset) * 4,
                          static_cast<std::uint64_t>(part.shape(id).numel()) * 4});
    return pieces;
}

Tensor state_tensor(const SolverImpl& solver, const std::string& state) {
    const Executor& executor = *solver.shared_net->built().executor;
    return executor.tensor(executor.plan().graph.find(state));
}

std::vector<std::byte> download(const Tensor& tensor) {
    std::vector<std::byte> data(tensor.bytes());
    tensor.copy_to_host(data.data(), data.size());
    return data;
}

void write_state(Hdf5Writer& file, const Graph& whole, const std::string& state,
                 const std::vector<SolverImpl*>& solvers) {
    const Graph& first = graph_of(*solvers.front());
    const Value& value = first.value(first.find(state));
    if (!is_of_parameters(first, value)) {  // the same in all parts
        const std::vector<std::byte> data = download(state_tensor(*solvers.front(), state));
        file.write("solver/" + state, value.spec.shape, value.spec.dtype, data.data());
        return;
    }
    std::vector<std::byte> all(static_cast<std::size_t>(whole.block_elements()) * 4);
    for (const SolverImpl* const solver : solvers) {
        const std::vector<std::byte> own = download(state_tensor(*solver, state));
        for (const Piece& piece : pieces_of(whole, graph_of(*solver)))
            std::memcpy(all.data() + piece.whole, own.data() + piece.part, piece.bytes);
    }
    file.write("solver/" + state, Shape{whole.block_elements()}, value.spec.dtype, all.data());
}

void read_state(const Hdf5Reader& file, const Graph& whole, const std::string& state,
                const std::vector<SolverImpl*>& solvers) {
    const std::vector<std::byte> all = file.read("solver/" + state);
    for (const SolverImpl* const solver : solvers) {
        const Graph& graph = graph_of(*solver);
        Tensor tensor = state_tensor(*solver, state);
        if (!is_of_parameters(graph, graph.value(graph.find(state)))) {
            tensor.copy_from_host(all.data(), tensor.bytes());
            continue;
        }
        std::vector<std::byte> own(tensor.bytes());  // with zeros in the gaps
        for (const Piece& piece : pieces_of(whole, graph))
            std::memcpy(own.data() + piece.part, all.data() + piece.whole, piece.bytes);
        tensor.copy_from_host(own.data(), own.size());
    }
}

void check_states(const Hdf5Reader& file, const Graph& whole,
                  const std::map<std::string, std::vector<SolverImpl*>>& states) {
    for (const auto& [state, solvers] : states) {
        const Graph& graph = graph_of(*solvers.front());
        const Value& value = graph.value(graph.find(state));
        const Shape want =
            is_of_parameters(graph, value) ? Shape{whole.block_elements()} : value.spec.shape;
        const Hdf5Dataset& dataset = file.info("solver/" + state);
        if (dataset.shape != want || dataset.dtype != value.spec.dtype)
            fail(ErrorKind::format, "'solver/", state, "' has shape ", dataset.shape.str(), " of ",
                 name_of(dataset.dtype), " in '", file.path(), "', this solver expects ",
                 want.str(), " of ", name_of(value.spec.dtype));
    }
}

/// The record of all parts, whose nodes have names that occur once in the network.
CheckpointRecord record_of(PlacedNetImpl& net) {
    CheckpointRecord all;
    for (std::size_t i = 0; i < net.cut().parts.size(); ++i) {
        if (!net.cut().parts[i].runs) continue;
        const CheckpointRecord part = record_of(Access::impl(net.part(static_cast<int>(i))));
        all.precision = part.precision;
        all.precisions.insert(part.precisions.begin(), part.precisions.end());
        all.engines.insert(part.engines.begin(), part.engines.end());
    }
    return all;
}

}  // namespace

void write_checkpoint(Hdf5Writer& file, const PlacedTraining& training,
                      const std::map<std::string, double>& extra) {
    PlacedNetImpl& net = training.net;
    require(training.fed.empty(), "save_checkpoint() in the middle of a batch, after ",
            training.fed.size(), " of its ", training.options.shards,
            " shards: save between batches");
    CheckpointProgress progress;
    for (std::size_t i = 0; i < net.cut().parts.size(); ++i) {
        const NetImpl& part = Access::impl(net.part(static_cast<int>(i)));
        part.require_params("save_checkpoint()");
        progress.random_step = std::max(progress.random_step, part.step_count);
        progress.seed = part.options().seed;
    }
    for (const std::string& name : net.param_names()) {
        const HostTensor values = net.part(net.param_part(name)).read_param(name);
        file.write(name, values.shape, values.dtype, values.data.data());
    }
    for (const auto& [state, solvers] : states_of(training))
        write_state(file, net.graph(), state, solvers);
    write_record(file, record_of(net));
    if (!training.solvers.empty()) {
        progress.updates = training.solvers.front()->updates;
        progress.batches = training.solvers.front()->batches;
    }
    progress.shards = training.options.shards;
    progress.rate = training.rate;
    progress.extra = extra;
    write_progress(file, progress);
}

std::map<std::string, double> read_checkpoint(const Hdf5Reader& file,
                                              const PlacedTraining& training) {
    PlacedNetImpl& net = training.net;
    const CheckpointProgress progress = read_progress(file);
    check_shards(file, progress, training.options.shards);
    const CheckpointRecord made = read_record(file), now = record_of(net);
    check_precision(file.path(), made, now);
    const auto states = states_of(training);
    check_states(file, net.graph(), states);
    net.load_weights(file.path(), false);
    for (const auto& [state, solvers] : states) read_state(file, net.graph(), state, solvers);
    for (std::size_t i = 0; i < net.cut().parts.size(); ++i) {
        NetImpl& part = Access::impl(net.part(static_cast<int>(i)));
        part.step_count = progress.random_step;
        if (progress.seed) part.set_seed(*progress.seed);
        part.checkpoint_remarks.clear();
    }
    Access::impl(net.part(0)).checkpoint_remarks = other_engines(file.path(), made, now);
    for (SolverImpl* const solver : training.solvers) {
        solver->sums.restart();
        solver->updates = progress.updates;
        solver->batches = progress.batches;
        solver->rate = progress.rate.value_or(solver->rate);
    }
    training.fed.clear();
    training.rate = progress.rate.value_or(training.rate);
    return progress.extra;
}

void PlacedSolver::save_checkpoint(const std::string& path,
                                   const std::map<std::string, double>& extra) {
    Hdf5Writer file(path);
    write_checkpoint(file, training_of(*impl_), extra);
    file.commit();
}

std::map<std::string, double> PlacedSolver::load_checkpoint(const std::string& path) {
    return read_checkpoint(Hdf5Reader(path), training_of(*impl_));
}

}  // namespace dlprim
