// SPDX-License-Identifier: MIT
// Shards by measured times: uneven devices get uneven numbers, and what is trained stays the same.
#include "api/rank_shards.hpp"
#include "net/support.hpp"
#include "net/two_layers.hpp"

#include <algorithm>

using namespace dlprim;
using namespace dlprim::testing;

namespace {

using Shards = std::vector<int>;

SolverOptions measured_solver(int shards) {
    return {.learning_rate = 0.01, .shards = shards};
}

TeamOptions measured() {
    return {.measure_shards = true};
}

Net open_measured(const Context& context, int) {
    return make_net(context, small_network, training(4));
}

/// Parameters and statistics after two batches.
std::map<std::string, Bytes> bits_of_measured(const std::vector<Context>& devices,
                                              const TeamOptions& options) {
    Team team(devices, open_measured, measured_solver(5), options);
    CHECK(team.shard_seconds().size() == (options.measure_shards ? devices.size() : 0));
    for (const double seconds : team.shard_seconds()) CHECK(seconds > 0);
    for (int step = 0; step < 2; ++step)
        team.step([&](int rank, int shard) {
            feed_small_network(team.net(rank), static_cast<unsigned>(step * 100 + shard));
        });
    return all_bits(team.net(0));
}

}  // namespace

TEST_CASE("devices get shards by the time that one takes each", "[team]") {
    CHECK((shards_by_seconds({1}, 3) == Shards{3}));
    CHECK((shards_by_seconds({0.25, 0.25}, 5) == Shards{3, 2}));
    CHECK((shards_by_seconds({0.001, 0.002}, 6) == Shards{4, 2}));
    CHECK((shards_by_seconds({0.002, 0.001}, 3) == Shards{1, 2}));
    CHECK((shards_by_seconds({1, 2, 4}, 7) == Shards{4, 2, 1}));
    CHECK((shards_by_seconds({3, 1, 2}, 11) == Shards{2, 6, 3}));
    CHECK((shards_by_seconds({1, 100}, 64) == Shards{63, 1}));
    CHECK((shards_by_seconds({1, 1, 100}, 3) == Shards{1, 1, 1}));
    CHECK((shards_by_seconds({0, 0, 1}, 8) == Shards{6, 1, 1}));  // below what the clock tells
}

TEST_CASE("no other numbers of shards end earlier", "[team]") {
    for (int shards = 3; shards < 20; ++shards)
        for (const std::vector<double>& seconds :
             {std::vector<double>{1, 1.7, 5}, std::vector<double>{2, 0.3, 0.9}}) {
            const auto end = [&](const Shards& own) {
                double last = 0;
                for (std::size_t i = 0; i < own.size(); ++i)
                    last = std::max(last, own[i] * seconds[i]);
                return last;
            };
            const Shards chosen = shards_by_seconds(seconds, shards);
            INFO(shards << " shards");
            CHECK(chosen[0] + chosen[1] + chosen[2] == shards);
            CHECK(*std::min_element(chosen.begin(), chosen.end()) >= 1);
            for (int a = 1; a < shards - 1; ++a)
                for (int b = 1; a + b < shards; ++b)
                    CHECK(end(chosen) <= end({a, b, shards - a - b}));
        }
}

TEST_CASE("a team that measures its devices trains the bits of one device", "[team]") {
    ON_EVERY_DEVICE(device) {
        const auto one = bits_of_measured({device}, {});
        for (const std::size_t count : {2, 3}) {
            INFO(count << " devices");
            CHECK((bits_of_measured(contexts_like(device, count), measured()) == one));
        }
    }
}

TEST_CASE("the slower of two devices gets fewer shards", "[team]") {
    // The slower one is made so by a larger batch of the same network.
    const std::vector<Context> devices = contexts_like(Context("cpu"), 2);
    const auto open = [](const Context& context, int rank) {
        return make_net(context, TwoLayers::json(rank == 0 ? 100000 : 4), training());
    };
    const Team team(devices, open, measured_solver(8), measured());
    const std::vector<double> seconds = team.shard_seconds();
    REQUIRE(seconds.size() == 2);
    CHECK(seconds[0] > 3 * seconds[1]);
    CHECK(team.shards(0) + team.shards(1) == 8);
    CHECK(team.shards(0) < team.shards(1));
    CHECK(team.first_shard(1) == team.shards(0));
    CHECK(team.notes().at(0).find("a shard takes the devices ") == 0);
}

TEST_CASE("numbers of shards are given or measured", "[team]") {
    const std::vector<Context> devices = contexts_like(Context("cpu"), 2);
    TeamOptions both = measured();
    both.shards = {2, 2};
    check_error(invalid, {"given and are to be measured"},
                [&] { Team(devices, open_measured, measured_solver(4), both); });
    check_error(invalid, {"2 devices and 1 shard"},
                [&] { Team(devices, open_measured, measured_solver(1), measured()); });
    // There is nothing to choose, so that nothing is timed.
    CHECK(Team(devices, open_measured, measured_solver(2), measured()).shard_seconds().empty());
    CHECK(
        Team({devices[0]}, open_measured, measured_solver(2), measured()).shard_seconds().empty());
}
