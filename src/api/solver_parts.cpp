// SPDX-License-Identifier: MIT
// SolverImpl: states of which each solver of a team keeps a part, as whole ones.
#include "api/solver_impl.hpp"
#include "base/text.hpp"
#include "train/update.hpp"

#include <cstddef>
#include <utility>

namespace dlprim {

namespace {

/// Where a part lies in the whole state.
std::uint64_t offset_of(const Value& value) {
    return static_cast<std::uint64_t>(value.part_begin) * size_of(value.spec.dtype);
}

}  // namespace

std::vector<std::byte> SolverImpl::gather(const std::string& state, Receivers receivers) {
    const Graph& graph = shared_net->built().executor->plan().graph;
    std::vector<std::byte> whole(static_cast<std::size_t>(graph.block_elements()) *
                                 size_of(graph.value(graph.find(state)).spec.dtype));
    for (SolverImpl* const peer : peers) {
        const Executor& executor = *peer->shared_net->built().executor;
        const ValueId id = executor.plan().graph.find(state);
        const Tensor part = executor.tensor(id);
        part.copy_to_host(whole.data() + offset_of(executor.plan().graph.value(id)), part.bytes());
    }
    if (group) exchange_parts(state, whole, receivers);
    return whole;
}

const Value* SolverImpl::find_state(const std::string& state) const {
    const Graph& graph = shared_net->built().executor->plan().graph;
    const ValueId id = graph.find(state);
    return id == no_value ? nullptr : &graph.value(id);
}

std::vector<std::byte> SolverImpl::read_state(const std::string& state) {
    if (find_state(state)->part_begin >= 0)
        return group ? std::move(gathered_.extract(state).mapped())
                     : gather(state, Receivers::first);
    const Executor& executor = *shared_net->built().executor;
    const Tensor tensor = executor.tensor(executor.plan().graph.find(state));
    std::vector<std::byte> data(tensor.bytes());
    tensor.copy_to_host(data.data(), data.size());
    return data;
}

void SolverImpl::write_state(const std::string& state, const std::vector<std::byte>& data) {
    if (find_state(state)->part_begin >= 0) return scatter(state, data);
    const Executor& executor = *shared_net->built().executor;
    executor.tensor(executor.plan().graph.find(state)).copy_from_host(data.data(), data.size());
}

void SolverImpl::exchange_parts(const std::string& state, std::vector<std::byte>& whole,
                                Receivers receivers) {
    const Graph& graph = shared_net->built().executor->plan().graph;
    const std::uint64_t each = size_of(graph.value(graph.find(state)).spec.dtype);
    std::vector<MessagePiece> pieces;  // of each process, whose parts follow each other
    int part = 0;
    for (const std::size_t count : parts_of_processes) {
        const int end = part + static_cast<int>(count);
        const auto begin_of = static_cast<std::uint64_t>(
            state_slice(graph.block_elements(), part, options.state_parts).begin);
        const auto end_of = static_cast<std::uint64_t>(
            state_slice(graph.block_elements(), end - 1, options.state_parts).end);
        pieces.push_back({whole.data() + begin_of * each, (end_of - begin_of) * each});
        part = end;
    }
    const auto receives = [&](std::size_t process) {
        return receivers == Receivers::all || process == 0;
    };
    const std::size_t self = group->rank();
    std::vector<Pieces> to(group->size()), from(group->size());
    for (std::size_t process = 0; process < group->size(); ++process) {
        if (process == self) continue;
        if (receives(process)) to[process] = {pieces[self]};
        if (receives(self)) from[process] = {pieces[process]};
    }
    group->exchange(to, from, cat("the solver's state '", state, "'"));
    if (!receives(self)) whole.clear();
}

void SolverImpl::scatter(const std::string& state, const std::vector<std::byte>& whole) {
    for (SolverImpl* const peer : peers) {
        const Executor& executor = *peer->shared_net->built().executor;
        const ValueId id = executor.plan().graph.find(state);
        Tensor part = executor.tensor(id);
        const std::uint64_t begin = offset_of(executor.plan().graph.value(id));
        require(begin + part.bytes() <= whole.size(), "state '", state, "' has too few elements");
        part.copy_from_host(whole.data() + begin, part.bytes());
    }
}

bool SolverImpl::gather_own_states() {
    if (!group) return true;
    gathered_.clear();
    const bool is_first = group->rank() == 0;
    const Graph& graph = shared_net->built().executor->plan().graph;
    for (const Value& value : graph.values) {
        if (value.role != Role::state || value.part_begin < 0) continue;
        std::vector<std::byte> whole = gather(value.name, Receivers::first);
        if (is_first) gathered_.emplace(value.name, std::move(whole));
    }
    return is_first;
}

}  // namespace dlprim
