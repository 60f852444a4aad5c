// SPDX-License-Identifier: MIT
// The levels in which the ranks of a run add up their sums: those that share memory first, then
// processes of a host, then hosts, or what DLPRIM_LEVELS says.
#pragma once

#include "collective/processes/level_plan.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace dlprim {

/// The processes of a run.
struct ProcessLayout {
    std::vector<std::size_t> ranks;  ///< how many each process has; ranks follow each other
    std::vector<std::size_t> hosts;  ///< which host each is on
    std::vector<bool> shared;        ///< whether each shares memory with the others of its host
};

/// Groups of processes. The first level are processes that share memory, also where each is alone.
/// `setting` is empty, or numbers as "8,16,16": so many processes that follow each other are a
/// group, so many of these groups one of the next level, and so on to one of all; groups within the
/// processes that share memory are left out. Throws Error(invalid_argument) where the product is
/// not the number of processes, or a group has a part of such processes.
std::vector<LevelPlan::Groups> process_levels_of(const ProcessLayout& layout,
                                                 const std::string& setting);
/// The same groups, of ranks: for a LevelPlan.
std::vector<LevelPlan::Groups> rank_levels_of(std::vector<LevelPlan::Groups> of_processes,
                                              const std::vector<std::size_t>& ranks);

}  // namespace dlprim
