// SPDX-License-Identifier: MIT
// SolverCore: checkpoints. They hold no trace of a placement: the state of all trained parameters
// lies in one dataset, in the order that parameters have in the whole network. Each stage has a
// piece for each of its own parameters.
#include "api/checkpoint_progress.hpp"
#include "api/checkpoint_record.hpp"
#include "api/solver_impl.hpp"
#include "base/text.hpp"
#include "runtime/context_impl.hpp"
#include "train/update.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace dlprim {

namespace {

bool kept_in_checkpoint(const Value& value) {
    return value.role == Role::state && value.name != loss_guard_name;
}

const Graph& graph_of(const SolverImpl& solver) {
    return solver.shared_net->built().executor->plan().graph;
}

/// Checkpoints hold whole states, also of solvers that keep a part of each.
bool is_of_parameters(const Graph& graph, const Value& state) {
    return state.part_begin >= 0 || state.spec.shape == Shape{graph.block_elements()};
}

/// Where the pieces of a state lie: bytes in the whole network's and in a stage's.
struct Piece {
    std::uint64_t whole = 0, stage = 0, bytes = 0;
};

std::vector<Piece> pieces_of(const Graph& whole, const Graph& stage, std::uint64_t element) {
    std::map<std::string, std::int64_t> offsets;
    for (const auto& [id, offset] : whole.block_offsets()) offsets[whole.value(id).name] = offset;
    std::vector<Piece> pieces;
    for (const auto& [id, offset] : stage.block_offsets())
        pieces.push_back({static_cast<std::uint64_t>(offsets.at(stage.value(id).name)) * element,
                          static_cast<std::uint64_t>(offset) * element,
                          static_cast<std::uint64_t>(stage.shape(id).numel()) * element});
    return pieces;
}

/// The record of all stages, whose nodes have names that occur once in the network.
CheckpointRecord record_of(NetCore& net) {
    CheckpointRecord all;
    for (int i = 0; i < net.stages(); ++i) {
        if (!net.runs(i)) continue;
        const CheckpointRecord stage = record_of(net.stage(i));
        all.precision = stage.precision;
        all.precisions.insert(stage.precisions.begin(), stage.precisions.end());
        all.engines.insert(stage.engines.begin(), stage.engines.end());
    }
    return all;
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

std::vector<SolverCore::State> SolverCore::states() {
    std::vector<State> all;
    for (SolverImpl* const solver : solvers())
        for (const Value& value : graph_of(*solver).values) {
            if (!kept_in_checkpoint(value)) continue;
            const auto same = [&](const State& state) { return state.name == value.name; };
            auto state = std::find_if(all.begin(), all.end(), same);
            if (state == all.end()) state = all.insert(all.end(), State{value.name, {}});
            state->solvers.push_back(solver);
        }
    return all;
}

Shape SolverCore::shape_of(const State& state) const {
    const Graph& graph = graph_of(*state.solvers.front());
    const Value& value = *state.solvers.front()->find_state(state.name);
    if (!is_of_parameters(graph, value)) return value.spec.shape;
    return Shape{(net().stages() == 1 ? graph : net().base_graph()).block_elements()};
}

std::vector<std::byte> SolverCore::read(const State& state) const {
    SolverImpl& first = *state.solvers.front();
    const Value& value = *first.find_state(state.name);
    // What is not of parameters is the same in all stages.
    if (net().stages() == 1 || !is_of_parameters(graph_of(first), value))
        return first.read_state(state.name);
    const std::uint64_t element = size_of(value.spec.dtype);
    const Graph& graph = net().base_graph();
    std::vector<std::byte> whole(static_cast<std::size_t>(graph.block_elements()) * element);
    for (SolverImpl* const solver : state.solvers) {
        const std::vector<std::byte> own = solver->read_state(state.name);
        for (const Piece& piece : pieces_of(graph, graph_of(*solver), element))
            std::memcpy(whole.data() + piece.whole, own.data() + piece.stage, piece.bytes);
    }
    return whole;
}

void SolverCore::write(const State& state, const std::vector<std::byte>& whole) const {
    for (SolverImpl* const solver : state.solvers) {
        const Graph& graph = graph_of(*solver);
        const Value& value = *solver->find_state(state.name);
        if (net().stages() == 1 || !is_of_parameters(graph, value)) {
            solver->write_state(state.name, whole);
            continue;
        }
        const std::uint64_t element = size_of(value.spec.dtype);
        // With zeros in the gaps.
        std::vector<std::byte> own(static_cast<std::size_t>(graph.block_elements()) * element);
        for (const Piece& piece : pieces_of(net().base_graph(), graph, element))
            std::memcpy(own.data() + piece.stage, whole.data() + piece.whole, piece.bytes);
        solver->write_state(state.name, own);
    }
}

bool SolverCore::gather_states() {
    bool writes = true;
    for (SolverImpl* const solver : solvers()) writes = solver->gather_own_states() && writes;
    return writes;
}

void SolverCore::write_checkpoint(Hdf5Writer& file, const std::map<std::string, double>& extra) {
    net().require_all_params("save_checkpoint()");
    require(taken() == 0, "save_checkpoint() in the middle of a batch, after ", taken(), " of its ",
            options.shards, " shards: save between batches");
    for (const std::string& name : net().param_names()) {
        if (net().is_kept(name)) continue;
        const HostTensor values = net().read_param(name);
        file.write(name, values.shape, values.dtype, values.data.data());
    }
    for (const State& state : states()) {
        const DType dtype = state.solvers.front()->find_state(state.name)->spec.dtype;
        file.write("solver/" + state.name, shape_of(state), dtype, read(state).data());
    }
    write_record(file, record_of(net()));
    CheckpointProgress progress;
    for (int i = 0; i < net().stages(); ++i) {
        const NetImpl& stage = net().stage(i);
        progress.random_step = std::max(progress.random_step, stage.step_count);
        progress.seed = stage.options().seed;
    }
    progress.shards = options.shards;
    progress.rate = rate;
    progress.extra = extra;
    bool any_order = false;
    for (const SolverImpl* const solver : solvers()) {
        progress.updates = solver->updates;
        progress.batches = solver->batches;
        any_order = any_order || solver->sums.is_in_any_order();
    }
    write_progress(file, progress);
    if (any_order) file.attribute("", "order", std::string("any"));
}

std::vector<std::string> SolverCore::check_states(const Hdf5Reader& file) {
    const std::vector<State> all = states();
    const bool scales = std::any_of(
        all.begin(), all.end(), [](const State& state) { return state.name == loss_scale_name; });
    std::vector<std::string> remarks;
    if (file.has(cat("solver/", loss_scale_name)) != scales) {
        if (scales)
            fail(ErrorKind::format, "'", file.path(),
                 "' holds no loss scale, which this solver has for precision fp16: it was trained "
                 "in another precision, or with a loss_scale of 0");
        remarks.push_back(
            cat("'", file.path(),
                "' holds a loss scale, for precision fp16, which this solver does not have"));
    }
    for (const State& state : all) {
        const std::string name = "solver/" + state.name;
        if (const Shape shape = shape_of(state), there = file.info(name).shape; there != shape)
            fail(ErrorKind::format, "'", name, "' has shape ", there.str(), " in '", file.path(),
                 "', this solver expects ", shape.str());
    }
    return remarks;
}

std::map<std::string, double> SolverCore::read_checkpoint(const Hdf5Reader& file) {
    const CheckpointProgress progress = read_progress(file);
    check_shards(file, progress, options.shards);
    const CheckpointRecord made = read_record(file), now = record_of(net());
    check_precision(file.path(), made, now);
    std::vector<std::string> remarks = other_engines(file.path(), made, now);
    for (std::string& remark : check_states(file)) remarks.push_back(std::move(remark));
    net().load_weights(file.path(), false);
    for (const State& state : states()) {
        const DType dtype = state.solvers.front()->find_state(state.name)->spec.dtype;
        std::vector<std::byte> data(static_cast<std::size_t>(shape_of(state).numel()) *
                                    size_of(dtype));
        file.read("solver/" + state.name, dtype, data.data(), data.size());
        write(state, data);
    }
    for (int i = 0; i < net().stages(); ++i) {
        NetImpl& stage = net().stage(i);
        stage.step_count = progress.random_step;
        if (progress.seed) stage.set_seed(*progress.seed);
        stage.checkpoint_remarks = std::exchange(remarks, {});
    }
    rate = progress.rate.value_or(rate);
    for (SolverImpl* const solver : solvers()) {
        solver->sums.restart();
        solver->updates = progress.updates;
        solver->batches = progress.batches;
        solver->rate = rate;
    }
    forget_batch();
    return progress.extra;
}

}  // namespace dlprim
