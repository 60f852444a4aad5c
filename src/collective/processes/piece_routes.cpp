// SPDX-License-Identifier: MIT
// PieceRoutes.
#include "collective/processes/piece_routes.hpp"

#include <algorithm>

namespace dlprim {

namespace {

using Groups = LevelPlan::Groups;
using Members = std::vector<std::vector<std::size_t>>;

/// The processes of each group of a level, in ascending order.
Members members_of(const Groups& level) {
    Members members(*std::max_element(level.begin(), level.end()) + 1);
    for (std::size_t process = 0; process < level.size(); ++process)
        members[level[process]].push_back(process);
    return members;
}

/// The groups of the level before that a process's group consists of, in the order of their first
/// processes.
std::vector<std::size_t> parts_of(const std::vector<Groups>& levels, std::size_t level,
                                  std::size_t process) {
    std::vector<std::size_t> parts;
    const Groups &whole = levels[level], &before = levels[level - 1];
    for (std::size_t i = 0; i < whole.size(); ++i)
        if (whole[i] == whole[process] &&
            std::find(parts.begin(), parts.end(), before[i]) == parts.end())
            parts.push_back(before[i]);
    return parts;
}

/// The process of a group at the same place as one in its own group.
std::size_t counterpart(const std::vector<std::size_t>& own, std::size_t process,
                        const std::vector<std::size_t>& other) {
    const auto place = std::find(own.begin(), own.end(), process) - own.begin();
    return other[static_cast<std::size_t>(place) % other.size()];
}

}  // namespace

PieceRoutes PieceRoutes::of_all(const std::vector<Groups>& levels, std::size_t self) {
    PieceRoutes routes;
    for (std::size_t process = 0; process < levels[0].size(); ++process)
        routes.keepers_.push_back(process);
    for (std::size_t level = levels.size(); --level > 0;) {
        const Groups& before = levels[level - 1];
        const Members members = members_of(before);
        const std::vector<std::size_t> parts = parts_of(levels, level, self);
        Round& round = routes.rounds_.emplace_back();
        for (std::size_t piece = 0; piece < routes.keepers_.size(); ++piece) {
            // The process of this group that has the piece.
            std::size_t& holder = routes.keepers_[piece];
            const std::vector<std::size_t>& giving = members[before[holder]];
            const auto receiver = [&](std::size_t part) {
                return counterpart(giving, holder, members[part]);
            };
            if (holder == self) {
                for (const std::size_t part : parts)
                    if (part != before[self]) round.sends.push_back({receiver(part), piece});
            } else if (before[holder] != before[self]) {
                const std::size_t own = receiver(before[self]);
                if (own == self) round.receives.push_back({holder, piece});
                holder = own;
            }
        }
    }
    routes.mates_ = members_of(levels[0])[levels[0][self]];
    return routes;
}

PieceRoutes PieceRoutes::of_first(const std::vector<Groups>& levels, std::size_t self) {
    PieceRoutes routes;
    for (std::size_t level = levels.size(); --level > 0;) {
        const Members members = members_of(levels[level - 1]);
        std::size_t most = 0;  // parts of any group
        for (const std::vector<std::size_t>& group : members_of(levels[level]))
            most = std::max(most, parts_of(levels, level, group.front()).size());
        // The first process of each part, in their order.
        std::vector<std::size_t> firsts;
        for (const std::size_t part : parts_of(levels, level, self))
            firsts.push_back(members[part].front());
        const auto place = static_cast<std::size_t>(std::find(firsts.begin(), firsts.end(), self) -
                                                    firsts.begin());
        for (std::size_t have = 1; have < most; have *= 2) {
            Round& round = routes.rounds_.emplace_back();
            if (place < have && place + have < firsts.size())
                round.sends.push_back({firsts[place + have], 0});
            if (place < firsts.size() && have <= place && place < 2 * have)
                round.receives.push_back({firsts[place - have], 0});
        }
    }
    routes.mates_ = members_of(levels[0])[levels[0][self]];
    routes.keepers_ = {routes.mates_.front()};
    return routes;
}

}  // namespace dlprim
