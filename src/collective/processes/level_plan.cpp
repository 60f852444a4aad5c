// SPDX-License-Identifier: MIT
// LevelPlan.
#include "collective/processes/level_plan.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace dlprim {

LevelPlan::Groups LevelPlan::alone(std::size_t ranks) {
    Groups groups(ranks);
    std::iota(groups.begin(), groups.end(), std::size_t{0});
    return groups;
}

LevelPlan::Members LevelPlan::members_of(const Groups& level, const Groups& before) {
    Members members(*std::max_element(level.begin(), level.end()) + 1);
    require(members.size() <= level.size(), "numbers of groups must leave none out");
    constexpr std::size_t nowhere = -1;
    std::vector<std::size_t> home(before.size(), nowhere);
    for (std::size_t rank = 0; rank < level.size(); ++rank) {
        std::size_t& group = home[before[rank]];
        if (group == nowhere) members[level[rank]].push_back(before[rank]);
        require(group == nowhere || group == level[rank], "rank ", rank, " is in group ",
                level[rank], " of a level, and ranks that it has met before are in group ", group,
                ": groups must consist of whole groups of the level before");
        group = level[rank];
    }
    for (const std::vector<std::size_t>& each : members)
        require(!each.empty(), "numbers of groups must leave none out");
    return members;
}

std::vector<LevelPlan::Groups> LevelPlan::groups_of(const std::vector<std::size_t>& sizes) {
    std::size_t ranks = 1, size = 1;
    for (const std::size_t each : sizes) ranks *= each;
    std::vector<Groups> levels;
    for (const std::size_t each : sizes) {
        size *= each;
        Groups groups(ranks);
        for (std::size_t rank = 0; rank < ranks; ++rank) groups[rank] = rank / size;
        levels.push_back(std::move(groups));
    }
    return levels;
}

LevelPlan::LevelPlan(std::vector<Groups> levels, int shards, const std::vector<ShardRange>& parts)
    : ranks_(parts.size()), levels_(std::move(levels)) {
    require(!parts.empty() && !levels_.empty(), "an exchange needs ranks and a level");
    for (const Groups& level : levels_)
        require(level.size() == ranks_, "a level has groups for ", level.size(), " ranks of ",
                ranks_);
    nodes_.emplace_back();
    for (const ShardRange& part : parts) {
        ShardTree tree(shards);
        for (int shard = part.first; shard < part.end(); ++shard) tree.take({shard, 1});
        nodes_.back().push_back(tree.pending());
    }
    for (std::size_t stage = 0; stage < stages(); ++stage) add_stage(stage, shards);
    const std::vector<std::vector<ShardRange>>& last = nodes_.back();
    require(last.size() == 1 && last[0] == std::vector<ShardRange>{{0, shards}},
            "the ranks of the last level do not have all of ", shards, " shards");
}

void LevelPlan::add_stage(std::size_t stage, int shards) {
    members_.push_back(members_of(levels_[stage], stage == 0 ? alone(ranks_) : levels_[stage - 1]));
    std::vector<std::vector<ShardRange>> nodes;
    std::vector<std::vector<Addend>> addends;
    for (const std::vector<std::size_t>& members : members_.back()) {
        std::vector<Addend> all;
        for (std::size_t member = 0; member < members.size(); ++member)
            for (std::size_t node = 0; node < nodes_[stage][members[member]].size(); ++node)
                all.push_back({member, node, nodes_[stage][members[member]][node]});
        std::sort(all.begin(), all.end(),
                  [](const Addend& a, const Addend& b) { return a.shards.first < b.shards.first; });
        // Halves of a node are neighbours in this order, also where other shards are missing.
        ShardTree tree(shards);
        for (const Addend& addend : all) tree.take(addend.shards);
        nodes.push_back(tree.pending());
        addends.push_back(std::move(all));
    }
    nodes_.push_back(std::move(nodes));
    addends_.push_back(std::move(addends));
}

LevelPlan::Division::Division(const LevelPlan& plan, std::int64_t elements, std::int64_t grain)
    : plan_(plan), elements_(elements), grain_(grain) {
    std::vector<Holdings> before(plan.ranks());
    for (std::size_t rank = 0; rank < plan.ranks() && elements > 0; ++rank)
        before[rank] = {{{0, elements}, rank}};
    for (std::size_t stage = 0; stage < plan.stages(); ++stage) {
        std::vector<std::vector<Cell>> cells;
        std::vector<Holdings> after;
        for (const std::vector<std::size_t>& members : plan.members_[stage]) {
            std::vector<const Holdings*> lists;
            lists.reserve(members.size());
            for (const std::size_t member : members) lists.push_back(&before[member]);
            cells.push_back(cells_of(lists));
            Holdings& holdings = after.emplace_back();
            for (const Cell& cell : cells.back())
                for (std::size_t member = 0; member < members.size(); ++member)
                    if (const ElementRange range = part(cell, member); range.size() > 0)
                        holdings.push_back({range, cell.holders[member]});
        }
        cells_.push_back(std::move(cells));
        before = std::move(after);
    }
}

std::vector<LevelPlan::Division::Cell> LevelPlan::Division::cells_of(
    const std::vector<const Holdings*>& members) {
    std::vector<Cell> cells;
    // Each list covers the same elements without gaps.
    std::vector<std::size_t> at(members.size(), 0);
    for (std::int64_t begin = 0; at[0] < members[0]->size();) {
        Cell cell;
        cell.range = {begin, (*members[0])[at[0]].range.end};
        for (std::size_t member = 0; member < members.size(); ++member) {
            const Holding& holding = (*members[member])[at[member]];
            cell.range.end = std::min(cell.range.end, holding.range.end);
            cell.holders.push_back(holding.rank);
        }
        begin = cell.range.end;
        for (std::size_t member = 0; member < members.size(); ++member)
            if ((*members[member])[at[member]].range.end == begin) ++at[member];
        cells.push_back(std::move(cell));
    }
    return cells;
}

LevelPlan::Division::Stage LevelPlan::Division::stage(std::size_t rank, std::size_t stage) const {
    Stage result;
    for (const Cell& cell : cells_[stage][plan_.levels_[stage][rank]]) {
        const auto self = std::find(cell.holders.begin(), cell.holders.end(), rank);
        if (self == cell.holders.end()) continue;
        const auto own = static_cast<std::size_t>(self - cell.holders.begin());
        const ElementRange kept = part(cell, own);
        for (std::size_t member = 0; member < cell.holders.size(); ++member) {
            if (member == own) continue;
            if (const ElementRange sent = part(cell, member); sent.size() > 0)
                result.sends.push_back({cell.holders[member], sent});
            if (kept.size() > 0) result.receives.push_back({cell.holders[member], kept});
        }
        if (kept.size() > 0) result.keeps.push_back({kept, cell.holders});
    }
    return result;
}

std::vector<ElementRange> LevelPlan::Division::held(std::size_t rank, std::size_t stage) const {
    std::vector<ElementRange> ranges;
    if (stage == 0) {
        if (elements_ > 0) ranges.push_back({0, elements_});
        return ranges;
    }
    for (const Kept& kept : this->stage(rank, stage - 1).keeps) ranges.push_back(kept.range);
    return ranges;
}

}  // namespace dlprim
