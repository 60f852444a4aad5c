// SPDX-License-Identifier: MIT
// LevelPlan: ranks made up in memory send each other what it says, and end with the bits of a sum
// that one rank makes alone, whatever the levels, shards and sizes.
#include "collective/processes/level_plan.hpp"

#include "collective/processes/levels.hpp"

#include "net/support.hpp"

#include <cstring>
#include <deque>
#include <limits>
#include <map>
#include <numeric>
#include <random>

using namespace dlprim;
using namespace dlprim::testing;

namespace {

using Values = std::vector<float>;
using Groups = LevelPlan::Groups;
constexpr float unknown = std::numeric_limits<float>::quiet_NaN();

/// Takes the next sum of the tree: adds those that it joins, from the newest on.
void take(ShardTree& tree, std::vector<Values>& pending, const ShardRange& range, Values next) {
    for (std::size_t joined = tree.take(range); joined > 0; --joined) {
        for (std::size_t i = 0; i < next.size(); ++i) next[i] = pending.back()[i] + next[i];
        pending.pop_back();
    }
    pending.push_back(std::move(next));
}

std::vector<Values> sums_of(const std::vector<Values>& shards, const ShardRange& part) {
    ShardTree tree(static_cast<int>(shards.size()));
    std::vector<Values> pending;
    for (int shard = part.first; shard < part.end(); ++shard)
        take(tree, pending, {shard, 1}, shards[static_cast<std::size_t>(shard)]);
    return pending;
}

/// Ranks that exchange messages in memory.
class Ranks {
  public:
    Ranks(const LevelPlan& plan, const std::vector<ShardRange>& parts,
          const std::vector<Values>& shards, std::int64_t grain)
        : plan_(plan), division_(plan, elements(shards), grain), shards_(shards) {
        for (const ShardRange& part : parts) sums_.push_back(sums_of(shards, part));
    }

    /// What each rank has of the sum of all.
    std::vector<Values> run() {
        for (std::size_t stage = 0; stage < plan_.stages(); ++stage) {
            for (std::size_t rank = 0; rank < plan_.ranks(); ++rank) send(rank, stage);
            for (std::size_t rank = 0; rank < plan_.ranks(); ++rank) add(rank, stage);
            for (const auto& [ends, queue] : wire_) CHECK(queue.empty());
        }
        std::vector<Values> means(plan_.ranks());
        for (std::size_t rank = 0; rank < plan_.ranks(); ++rank) {
            REQUIRE(sums_[rank].size() == 1);
            means[rank] = sums_[rank][0];
        }
        for (std::size_t stage = plan_.stages(); stage-- > 0;) {
            for (std::size_t rank = 0; rank < plan_.ranks(); ++rank)
                for (const auto& message : division_.stage(rank, stage).receives)
                    put(rank, message, means[rank]);
            for (std::size_t rank = 0; rank < plan_.ranks(); ++rank)
                for (const auto& message : division_.stage(rank, stage).sends) {
                    const Values values = get(message.rank, rank, message.range);
                    std::copy(values.begin(), values.end(),
                              means[rank].begin() + message.range.begin);
                }
        }
        return means;
    }

  private:
    static std::int64_t elements(const std::vector<Values>& shards) {
        return static_cast<std::int64_t>(shards[0].size());
    }
    void put(std::size_t from, const LevelPlan::Division::Message& to, const Values& values) {
        wire_[{from, to.rank}].emplace_back(values.begin() + to.range.begin,
                                            values.begin() + to.range.end);
    }
    Values get(std::size_t from, std::size_t to, const ElementRange& range) {
        auto& queue = wire_[{from, to}];
        REQUIRE(!queue.empty());
        Values values = std::move(queue.front());
        queue.pop_front();
        REQUIRE(static_cast<std::int64_t>(values.size()) == range.size());
        return values;
    }
    void send(std::size_t rank, std::size_t stage) {
        REQUIRE(sums_[rank].size() == plan_.nodes(rank, stage).size());
        for (const auto& message : division_.stage(rank, stage).sends)
            for (const Values& sum : sums_[rank]) put(rank, message, sum);
    }
    void add(std::size_t rank, std::size_t stage) {
        const LevelPlan::Division::Stage work = division_.stage(rank, stage);
        // By the range's begin and the rank that it came from: its sums.
        std::map<std::pair<std::int64_t, std::size_t>, std::vector<Values>> received;
        for (const auto& message : work.receives)
            for (std::size_t i = 0; i < plan_.nodes(message.rank, stage).size(); ++i)
                received[{message.range.begin, message.rank}].push_back(
                    get(message.rank, rank, message.range));
        std::vector<Values> after(plan_.nodes(rank, stage + 1).size(),
                                  Values(shards_[0].size(), unknown));
        for (const auto& kept : work.keeps) {
            ShardTree tree(static_cast<int>(shards_.size()));
            std::vector<Values> pending;
            for (const LevelPlan::Addend& addend : plan_.addends(rank, stage)) {
                const std::size_t holder = kept.holders[addend.member];
                CHECK(plan_.nodes(holder, stage)[addend.node] == addend.shards);
                const Values& own = sums_[rank][holder == rank ? addend.node : 0];
                take(tree, pending, addend.shards,
                     holder == rank
                         ? Values(own.begin() + kept.range.begin, own.begin() + kept.range.end)
                         : received.at({kept.range.begin, holder})[addend.node]);
            }
            CHECK(tree.pending() == plan_.nodes(rank, stage + 1));
            for (std::size_t i = 0; i < pending.size(); ++i)
                std::copy(pending[i].begin(), pending[i].end(),
                          after[i].begin() + kept.range.begin);
        }
        sums_[rank] = std::move(after);
    }

    const LevelPlan& plan_;
    const LevelPlan::Division division_;
    const std::vector<Values>& shards_;
    std::vector<std::vector<Values>> sums_;
    std::map<std::pair<std::size_t, std::size_t>, std::deque<Values>> wire_;
};

using Random = std::mt19937;
std::size_t between(Random& random, std::size_t least, std::size_t most) {
    return least + random() % (most - least + 1);
}

/// All ranks end with the bits of the sum that one of them makes alone.
void check_bits(Random& random, const std::vector<Groups>& levels, std::size_t elements) {
    const std::size_t ranks = levels[0].size();
    std::vector<ShardRange> parts;
    int shards = 0;
    const std::size_t most = between(random, 1, 4);
    for (std::size_t rank = 0; rank < ranks; ++rank) {
        const int count = static_cast<int>(between(random, 1, most));
        parts.push_back({shards, count});
        shards += count;
    }
    std::uniform_real_distribution<float> any(-1, 1);
    std::vector<Values> values(static_cast<std::size_t>(shards), Values(elements));
    for (Values& each : values)
        for (float& value : each) value = any(random) * std::exp2(8 * any(random));
    const LevelPlan plan(levels, shards, parts);
    const Values whole = sums_of(values, {0, shards}).front();
    const auto grain = static_cast<std::int64_t>(between(random, 1, 5));
    for (const Values& mean : Ranks(plan, parts, values, grain).run())
        CHECK(std::memcmp(mean.data(), whole.data(), elements * sizeof(float)) == 0);
}

/// Ranks that are spread over groups at random.
Groups spread(Random& random, std::size_t ranks, std::size_t groups) {
    Groups result(ranks);
    for (std::size_t rank = 0; rank < ranks; ++rank)
        result[rank] = rank < groups ? rank : random() % groups;
    std::shuffle(result.begin(), result.end(), random);
    return result;
}

}  // namespace

TEST_CASE("sums by levels have the bits of a sum by one", "[level_plan]") {
    Random random(7);
    for (int i = 0; i < 300; ++i) {
        std::vector<std::size_t> sizes(between(random, 1, 4));
        for (std::size_t& size : sizes) size = between(random, 1, 4);
        const std::size_t elements = between(random, 0, i % 3 == 0 ? 7 : 90);
        INFO("case " << i << ", " << elements << " elements");
        check_bits(random, LevelPlan::groups_of(sizes), elements);
    }
}

TEST_CASE("sums by levels allow hosts of any sizes, and ranks in any order", "[level_plan]") {
    Random random(8);
    for (int i = 0; i < 300; ++i) {
        const std::size_t hosts = between(random, 1, 6), sets = between(random, 1, hosts);
        const Groups host = spread(random, between(random, hosts, 14), hosts);
        const Groups set = spread(random, hosts, sets);
        std::vector<Groups> levels{host, host, Groups(host.size(), 0)};
        for (std::size_t& group : levels[1]) group = set[group];
        const std::size_t elements = between(random, 0, 90);
        INFO("case " << i << ", " << elements << " elements");
        check_bits(random, levels, elements);
    }
}

TEST_CASE("a host sends each element once, to the host that adds it", "[level_plan]") {
    const std::vector<std::size_t> sizes{8, 4};
    std::vector<ShardRange> parts;
    parts.reserve(32);
    for (int rank = 0; rank < 32; ++rank) parts.push_back({rank, 1});
    const LevelPlan plan(LevelPlan::groups_of(sizes), 32, parts);
    CHECK(plan.nodes(11, 0) == std::vector<ShardRange>{{11, 1}});
    CHECK(plan.nodes(11, 1) == std::vector<ShardRange>{{8, 8}});
    CHECK(plan.nodes(11, 2) == std::vector<ShardRange>{{0, 32}});
    const LevelPlan::Division division(plan, 32 * 1024, 1024);
    CHECK(division.held(11, 1) == std::vector<ElementRange>{{3 * 4096, 4 * 4096}});
    CHECK(division.held(11, 2) == std::vector<ElementRange>{{13 * 1024, 14 * 1024}});
    const LevelPlan::Division::Stage inner = division.stage(11, 0), outer = division.stage(11, 1);
    REQUIRE(inner.sends.size() == 7);
    for (std::size_t i = 0; i < 7; ++i) CHECK(inner.sends[i].rank == 8 + i + (i >= 3 ? 1 : 0));
    REQUIRE(outer.sends.size() == 3);
    CHECK(outer.sends[0].rank == 3);
    CHECK(outer.sends[2].rank == 27);
    std::int64_t sent = 0;
    for (std::size_t rank = 0; rank < 8; ++rank)
        for (const auto& message : division.stage(rank, 1).sends) sent += message.range.size();
    CHECK(sent == 32 * 1024 * 3 / 4);
}

TEST_CASE("a host with fewer ranks sends more by each", "[level_plan]") {
    const LevelPlan plan({{0, 0, 0, 1}, {0, 0, 0, 0}}, 7, {{0, 2}, {2, 2}, {4, 1}, {5, 2}});
    const LevelPlan::Division division(plan, 12, 1);
    CHECK(plan.nodes(1, 1) == std::vector<ShardRange>{{0, 4}, {4, 1}});
    CHECK(plan.nodes(3, 1) == std::vector<ShardRange>{{5, 1}, {6, 1}});
    CHECK(division.held(1, 2) == std::vector<ElementRange>{{4, 6}});
    CHECK(division.held(3, 2) == std::vector<ElementRange>{{2, 4}, {6, 8}, {10, 12}});
}

TEST_CASE("levels that do not nest are refused", "[level_plan]") {
    const std::vector<ShardRange> parts{{0, 1}, {1, 1}, {2, 1}};
    const auto refused = [&](const std::vector<Groups>& levels, int shards, const char* text) {
        check_error(ErrorKind::invalid_argument, {text},
                    [&] { const LevelPlan plan(levels, shards, parts); });
    };
    refused({{0, 0, 1}, {0, 1, 1}}, 3, "groups must consist of whole groups");
    refused({{0, 0, 1}}, 3, "do not have all of 3 shards");
    refused({{0, 0, 0}}, 4, "do not have all of 4 shards");
    refused({{0, 0}}, 3, "2 ranks of 3");
    refused({{0, 0, 2}}, 3, "leave none out");
}

TEST_CASE("levels are the hosts of the processes, or what a setting says", "[level_plan]") {
    using Levels = std::vector<Groups>;
    const std::vector<std::size_t> one(4, 1);
    const std::vector<bool> shared(4, true), apart(4, false);
    const Groups each{0, 1, 2, 3}, all(4, 0), pairs{0, 0, 1, 1};
    CHECK(process_levels_of({one, {0, 0, 0, 0}, shared}, "") == Levels{all});
    CHECK(process_levels_of({one, {0, 0, 0, 0}, apart}, "") == Levels{each, all});
    CHECK(process_levels_of({one, {0, 0, 1, 1}, shared}, "") == Levels{pairs, all});
    CHECK(process_levels_of({one, {0, 0, 1, 1}, apart}, "") == Levels{each, pairs, all});
    CHECK(process_levels_of({one, {0, 1, 0, 1}, shared}, "") == Levels{{0, 1, 0, 1}, all});
    CHECK(process_levels_of({one, each, apart}, "") == Levels{each, all});
    CHECK(process_levels_of({one, each, apart}, "2,2") == Levels{each, pairs, all});
    CHECK(process_levels_of({one, {0, 0, 1, 1}, shared}, "1,2,2") == Levels{pairs, all});
    CHECK(process_levels_of({one, {0, 0, 0, 0}, shared}, "2,2") == Levels{all});
    // One host shares no memory.
    CHECK(process_levels_of({one, {0, 0, 1, 1}, {true, true, false, false}}, "") ==
          Levels{{0, 0, 1, 2}, pairs, all});
    CHECK(process_levels_of({one, {0, 1, 0, 1}, {false, true, false, true}}, "") ==
          Levels{{0, 1, 2, 1}, {0, 1, 0, 1}, all});
    // Processes with several ranks.
    CHECK(rank_levels_of(process_levels_of({{2, 1, 3, 1}, {0, 0, 1, 1}, shared}, ""),
                         {2, 1, 3, 1}) == Levels{{0, 0, 0, 1, 1, 1, 1}, {0, 0, 0, 0, 0, 0, 0}});
    CHECK(rank_levels_of(process_levels_of({{2, 1}, {0, 0}, {false, false}}, ""), {2, 1}) ==
          Levels{{0, 0, 1}, {0, 0, 0}});
    const auto refused = [&](const std::vector<std::size_t>& hosts, const char* setting,
                             const char* text) {
        check_error(ErrorKind::invalid_argument, {"DLPRIM_LEVELS", text}, [&] {
            process_levels_of({one, hosts, shared}, setting);
        });
    };
    refused(each, "2,3", "6 processes, and the run has 4");
    std::string many = "2";
    for (int i = 1; i < 64; ++i) many += ",2";  // 2^64
    refused(each, many.c_str(), "processes, and the run has 4");
    refused(each, "2,x", "'2,x'");
    refused(each, "0,4", "'0,4'");
    refused({0, 0, 0, 1}, "2,2", "some of the processes that share a host's memory");
}
