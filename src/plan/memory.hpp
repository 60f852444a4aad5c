// SPDX-License-Identifier: MIT
// Memory plan: the place of every stored value, in-place work, and how states change.
#pragma once

#include "plan/launch_schedule.hpp"

#include <dlprim/memory_map.hpp>

#include <string>
#include <utility>
#include <vector>

namespace dlprim {

struct MemoryPlan {
    std::vector<std::uint64_t> slabs;
    std::vector<Block> blocks;
    std::vector<External> externals;
    std::vector<ValueId> literals;                       ///< which lie in blocks "constants"
    std::vector<char> setup_found;                       ///< as in Plan
    std::vector<std::pair<std::string, Place>> kept;     ///< as in Plan
    std::uint64_t peak_bytes = 0, setup_peak_bytes = 0;  ///< as in Plan
    std::uint64_t slab_bytes = 0;
    std::string report;
    MemoryMap map;
};

/// Assigns a place to every root in `schedule.stored`. If a value cannot be made where it is
/// needed, appends a copy to `schedule.items`. Throws Error(out_of_memory).
MemoryPlan plan_memory(const Traits& device, const Graph& graph, const std::vector<char>& constant,
                       LaunchSchedule& schedule, const PlanOptions& options);

/// The pairs of Operator::in_place() whose tensors have the same type and number of elements, so
/// that elements at the same place in memory are the same element.
std::vector<std::pair<int, int>> matching_in_place(const Graph& graph, const Node& node);

}  // namespace dlprim
