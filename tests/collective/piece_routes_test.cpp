// SPDX-License-Identifier: MIT
// PieceRoutes: processes made up in memory send each other what it says. All then find every piece
// in memory that they reach, and no group of any level has received a piece twice.
#include "collective/processes/piece_routes.hpp"

#include "net/support.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <random>
#include <set>
#include <string>

using namespace dlprim;
using namespace dlprim::testing;

namespace {

using Groups = PieceRoutes::Groups;
using Levels = std::vector<Groups>;

/// Processes that move numbers of pieces in memory.
class Run {
  public:
    Run(Levels levels, bool all) : levels_(std::move(levels)), all_(all), has_(size()) {
        for (std::size_t i = 0; i < size(); ++i) {
            routes_.push_back(all ? PieceRoutes::of_all(levels_, i)
                                  : PieceRoutes::of_first(levels_, i));
            if (all || i == 0) has_[i].insert(i);
        }
    }

    void run() {
        for (std::size_t round = 0; round < routes_[0].rounds().size(); ++round) {
            for (std::size_t i = 0; i < size(); ++i) {
                REQUIRE(routes_[i].rounds().size() == routes_[0].rounds().size());
                for (const auto& [to, piece] : routes_[i].rounds()[round].sends) {
                    REQUIRE(has_[i].count(piece) == 1);
                    wire_[{i, to}].push_back(piece);
                    ++sent_[i];
                }
            }
            for (std::size_t i = 0; i < size(); ++i)
                for (const auto& [from, piece] : routes_[i].rounds()[round].receives)
                    receive(i, from, piece);
            for (const auto& [ends, queue] : wire_) CHECK(queue.empty());
        }
        for (std::size_t i = 0; i < size(); ++i) check_memory(i);
    }

    std::size_t sent(std::size_t process) { return sent_[process]; }
    const PieceRoutes& routes(std::size_t process) const { return routes_[process]; }

  private:
    std::size_t size() const { return levels_[0].size(); }

    void receive(std::size_t to, std::size_t from, std::size_t piece) {
        auto& queue = wire_[{from, to}];
        REQUIRE(!queue.empty());
        REQUIRE(queue.front() == piece);
        queue.pop_front();
        CHECK(has_[to].insert(piece).second);
        for (std::size_t level = 0; level + 1 < levels_.size(); ++level)
            if (levels_[level][to] != levels_[level][from])
                CHECK(entered_.insert({level, levels_[level][to], piece}).second);
    }

    void check_memory(std::size_t process) const {
        CHECK(routes_[process].pieces() == (all_ ? size() : 1));
        const std::vector<std::size_t>& mates = routes_[process].mates();
        CHECK(std::count(mates.begin(), mates.end(), process) == 1);
        for (const std::size_t mate : mates) CHECK(levels_[0][mate] == levels_[0][process]);
        CHECK(static_cast<std::ptrdiff_t>(mates.size()) ==
              std::count(levels_[0].begin(), levels_[0].end(), levels_[0][process]));
        for (std::size_t piece = 0; piece < routes_[process].pieces(); ++piece) {
            const std::size_t keeper = routes_[process].keeper(piece);
            CHECK(std::count(mates.begin(), mates.end(), keeper) == 1);
            CHECK(has_[keeper].count(piece) == 1);
        }
    }

    const Levels levels_;
    const bool all_;
    std::vector<PieceRoutes> routes_;
    std::vector<std::set<std::size_t>> has_;
    std::map<std::size_t, std::size_t> sent_;
    std::map<std::pair<std::size_t, std::size_t>, std::deque<std::size_t>> wire_;
    std::set<std::tuple<std::size_t, std::size_t, std::size_t>> entered_;
};

/// Groups of processes in any order, which none of the groups misses.
Groups groups_in_any_order(std::mt19937& random, std::size_t processes, std::size_t groups) {
    Groups result(processes);
    for (std::size_t i = 0; i < processes; ++i) result[i] = i < groups ? i : random() % groups;
    std::shuffle(result.begin(), result.end(), random);
    return result;
}

}  // namespace

TEST_CASE("pieces reach all processes, and each group once", "[piece_routes]") {
    std::mt19937 random(3);
    for (int i = 0; i < 300; ++i) {
        const std::size_t hosts = 1 + random() % 6, sets = 1 + random() % hosts;
        const Groups host = groups_in_any_order(random, hosts + random() % 9, hosts);
        const Groups set = groups_in_any_order(random, hosts, sets);
        Levels levels{host, host, Groups(host.size(), 0)};
        for (std::size_t& group : levels[1]) group = set[group];
        INFO("case " << i);
        Run(levels, true).run();
        Run(levels, false).run();
    }
    for (const std::vector<std::size_t>& sizes :
         std::vector<std::vector<std::size_t>>{{1}, {5}, {2, 2}, {1, 7}, {2, 3, 4}, {3, 1, 2, 2}})
        for (const bool all : {true, false}) Run(LevelPlan::groups_of(sizes), all).run();
}

TEST_CASE("processes of equal hosts carry equally many pieces", "[piece_routes]") {
    Run processes(LevelPlan::groups_of({4, 3, 2}), true);
    processes.run();
    for (std::size_t i = 0; i < 24; ++i) {
        std::size_t kept = 0;
        for (std::size_t piece = 0; piece < 24; ++piece)
            kept += processes.routes(i).keeper(piece) == i ? 1 : 0;
        CHECK(kept == 6);
        // Its own to the other set; within the set that and the one that it has received.
        CHECK(processes.sent(i) == 1 + 2 * 2);
    }
}

TEST_CASE("nobody sends what the first process has more often than hosts double",
          "[piece_routes]") {
    Run processes(LevelPlan::groups_of({4, 16}), false);
    processes.run();
    for (std::size_t i = 0; i < 64; ++i) CHECK(processes.sent(i) <= 4);
    CHECK(processes.sent(0) == 4);
    CHECK(processes.routes(7).keeper(0) == 4);
    CHECK(processes.routes(0).rounds().size() == 4);
}
