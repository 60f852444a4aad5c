// SPDX-License-Identifier: MIT
// PieceRoutes.
#include "collective/processes/piece_routes.hpp"

#include <algorithm>

namespace dlprim {

namespace {

using Groups = LevelPlan::Groups;

/// The processes of each group of a level, in ascending order.
LevelPlan::Members processes_of(const Groups& level) {
    return LevelPlan::members_of(level, LevelPlan::alone(level.size()));
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
        const LevelPlan::Members members = processes_of(before);
        const std::vector<std::size_t> parts =
            LevelPlan::members_of(levels[level], before)[levels[level][self]];
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
    routes.mates_ = processes_of(levels[0])[levels[0][self]];
    return routes;
}

PieceRoutes PieceRoutes::of_first(const std::vector<Groups>& levels, std::size_t self) {
    PieceRoutes routes;
    for (std::size_t level = levels.size(); --level > 0;) {
        const LevelPlan::Members members = processes_of(levels[level - 1]);
        const LevelPlan::Members parts = LevelPlan::members_of(levels[level], levels[level - 1]);
        std::size_t most = 0;  // parts of any group
        for (const std::vector<std::size_t>& each : parts) most = std::max(most, each.size());
        // The first process of each part, in their order.
        std::vector<std::size_t> firsts;
        for (const std::size_t part : parts[levels[level][self]])
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
    routes.mates_ = processes_of(levels[0])[levels[0][self]];
    routes.keepers_ = {routes.mates_.front()};
    return routes;
}

}  // namespace dlprim
