// SPDX-License-Identifier: MIT
// Levels of a run.
#include "collective/processes/levels.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace dlprim {

namespace {

using Groups = LevelPlan::Groups;

/// Whether each group of one level lies within a group of the other.
bool lies_within(const Groups& inner, const Groups& outer) {
    std::map<std::size_t, std::size_t> home;
    for (std::size_t i = 0; i < inner.size(); ++i)
        if (home.emplace(inner[i], outer[i]).first->second != outer[i]) return false;
    return true;
}

/// Processes that share memory, and those that are alone.
Groups memory_groups(const ProcessLayout& layout) {
    Groups groups;
    std::map<std::size_t, std::size_t> of_hosts;
    std::size_t count = 0;
    for (std::size_t i = 0; i < layout.hosts.size(); ++i) {
        const auto known = of_hosts.find(layout.hosts[i]);
        if (layout.shared[i] && known != of_hosts.end()) {
            groups.push_back(known->second);
            continue;
        }
        if (layout.shared[i]) of_hosts[layout.hosts[i]] = count;
        groups.push_back(count++);
    }
    return groups;
}

std::vector<Groups> levels_in(const std::string& setting, std::size_t processes) {
    constexpr std::size_t most = 1'000'000'000;  // so that no product is beyond its type
    std::vector<std::size_t> sizes;
    std::size_t product = 1;
    for (const std::string& word : split(setting, ',')) {
        const auto each = leading_number<std::size_t>(word, 0);
        require(each > 0 && each <= processes && cat(each) == word, "DLPRIM_LEVELS is '", setting,
                "': it must be numbers of processes, of groups of them, and so on, as 8,16, whose "
                "product is the number of processes, ",
                processes);
        sizes.push_back(each);
        product = std::min(product * each, most);
    }
    require(product == processes, "DLPRIM_LEVELS is '", setting, "', which are ", product,
            " processes, and the run has ", processes);
    return LevelPlan::groups_of(sizes);
}

}  // namespace

std::vector<Groups> process_levels_of(const ProcessLayout& layout, const std::string& setting) {
    const std::size_t processes = layout.ranks.size();
    std::vector<Groups> wanted{layout.hosts, Groups(processes, 0)};
    if (!setting.empty()) wanted = levels_in(setting, processes);
    std::vector<Groups> levels{memory_groups(layout)};
    for (Groups& level : wanted) {
        if (lies_within(level, levels.back())) continue;
        require(lies_within(levels.back(), level), "DLPRIM_LEVELS is '", setting,
                "': a group would have some of the processes that share a host's memory, and not "
                "all");
        levels.push_back(std::move(level));
    }
    return levels;
}

std::vector<Groups> rank_levels_of(std::vector<Groups> of_processes,
                                   const std::vector<std::size_t>& ranks) {
    for (Groups& level : of_processes) {
        Groups of_ranks;
        for (std::size_t i = 0; i < ranks.size(); ++i)
            of_ranks.insert(of_ranks.end(), ranks[i], level[i]);
        level = std::move(of_ranks);
    }
    return of_processes;
}

}  // namespace dlprim
