// SPDX-License-Identifier: MIT
// find_chains.
#include "plan/chains.hpp"

#include "engine/kernel_function.hpp"
#include "plan/chain_program.hpp"

#include <map>
#include <set>
#include <utility>

namespace dlprim {

namespace {

using Memories = std::set<std::pair<Place::Kind, int>>;

/// Adds the memories that a step's operands lie in, unless they are more than a launch can have.
bool add_memories(const Step& step, Memories& memories) {
    Memories all = memories;
    for (const Place& place : step.operands)
        if (place.kind != Place::Kind::none) all.emplace(place.kind, place.index);
    if (all.size() > ChainProgram::most_memories) return false;
    memories.swap(all);
    return true;
}

}  // namespace

bool may_have_chains(const Traits& device) {
    return device.wide_vectors && !device.host && device.compute_units >= 2;
}

std::vector<ChainRange> find_chains(const std::vector<Step>& steps) {
    std::map<const Launch*, bool> known;  // steps of the same work share a launch
    const auto fits = [&](const Step& step) {
        const auto [at, is_new] = known.try_emplace(step.launch.get(), false);
        if (is_new) at->second = are_functions(step.launch->calls());
        return at->second;
    };
    std::vector<ChainRange> chains;
    for (std::size_t first = 0; first < steps.size();) {
        double bound = 0;
        std::size_t last = first;
        Memories memories;
        for (; last < steps.size() && fits(steps[last]) && add_memories(steps[last], memories);
             ++last)
            bound += steps[last].bound_seconds;
        if (last - first > 1 && bound < 1e-3 * static_cast<double>(last - first))
            chains.push_back({first, last, nullptr});
        // A step that a chain has no room for may begin the next one.
        first = last > first && last < steps.size() && fits(steps[last]) ? last : last + 1;
    }
    return chains;
}

}  // namespace dlprim
