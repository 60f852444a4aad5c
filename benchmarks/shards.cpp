// SPDX-License-Identifier: MIT
// What shards cost. Peers are interleaved, and medians compared.
//
//   shards NET DEVICE BATCH SHARDS ROUNDS
//     one device: the time of S shards by one update over that of S batches with `accumulate`,
//     which compute the same shapes
//   shards NET DEVICE,DEVICE BATCH SHARDS ROUNDS
//     several devices: the time of a step whose gradients leave in ranges beside backward over that
//     of one whose gradients leave as a whole
#include "steps.hpp"

#include <dlprim/net.hpp>
#include <dlprim/solver.hpp>
#include <dlprim/team.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

namespace dp = dlprim;

namespace {

/// Steps of a team.
struct Together {
    dp::Team team;
    std::vector<double> seconds;

    Together(const std::vector<dp::Context>& devices, const char* path, const dp::NetOptions& how,
             const dp::SolverOptions& options, std::uint64_t range_bytes)
        : team(
              devices,
              [&](const dp::Context& context, int) {
                  return dp::Net::from_json_file(context, path, how);
              },
              options, options_of(range_bytes)) {
        team.net(0).initialize();
        team.share_state();
        for (int rank = 0; rank < team.size(); ++rank) set_inputs(team.net(rank));
    }
    static dp::TeamOptions options_of(std::uint64_t range_bytes) {
        dp::TeamOptions how;
        how.range_bytes = range_bytes;
        return how;
    }

    void run() {
        const auto begin = std::chrono::steady_clock::now();
        team.step([](int, int) {});
        for (int rank = 0; rank < team.size(); ++rank)
            (void)team.net(rank).output(team.net(rank).loss_names().at(0)).to_floats();
        const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin;
        seconds.push_back(passed.count());
    }
};

void print(const char* what, const char* peer, const std::vector<double>& first,
           const std::vector<double>& second) {
    std::printf("ms of %s, %s:", what, peer);
    std::vector<double> ratios;
    for (std::size_t i = 0; i < first.size(); ++i) {
        std::printf(" %.1f,%.1f", 1e3 * first[i], 1e3 * second[i]);
        ratios.push_back(first[i] / second[i]);
    }
    std::printf("\n%s %.2f ms, %s %.2f ms, median of the rounds' ratios %.4f\n", what,
                1e3 * median(first), peer, 1e3 * median(second), median(ratios));
}

struct Peer {
    dp::Net net;
    std::unique_ptr<dp::Solver> solver;
    std::vector<double> seconds;

    Peer(const dp::Context& context, const char* path, const dp::NetOptions& how,
         const dp::SolverOptions& options)
        : net(dp::Net::from_json_file(context, path, how)) {
        solver = std::make_unique<dp::Solver>(net, options);
        net.initialize();
        set_inputs(net);
    }

    void run(int shards) {
        const auto begin = std::chrono::steady_clock::now();
        for (int i = 0; i < shards; ++i) solver->step();
        (void)net.output(net.loss_names().at(0)).to_floats();
        const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin;
        seconds.push_back(passed.count());
    }
};

}  // namespace

int main(int count, char** words) try {
    if (count != 6) {
        std::fprintf(stderr, "usage: shards NET DEVICE BATCH SHARDS ROUNDS\n");
        return 2;
    }
    const int shards = std::atoi(words[4]), rounds = std::atoi(words[5]);
    const std::vector<dp::Context> devices = dp::open_devices(words[2]);
    dp::NetOptions how;
    how.mode = dp::Mode::training;
    how.batch = std::atoi(words[3]);
    dp::SolverOptions with_shards, with_batches;
    with_shards.shards = shards;
    with_batches.accumulate = shards;
    for (const dp::Context& device : devices) std::printf("%s ", device.info().str().c_str());
    std::printf("%s, %d x %d\n", words[1], shards, std::atoi(words[3]));
    if (devices.size() > 1) {
        Together ranges(devices, words[1], how, with_shards, dp::TeamOptions{}.range_bytes);
        Together whole(devices, words[1], how, with_shards, std::uint64_t{1} << 40);
        for (int round = -2; round < rounds; ++round) {
            (round % 2 == 0 ? ranges : whole).run();
            (round % 2 == 0 ? whole : ranges).run();
            if (round < 0) ranges.seconds.clear(), whole.seconds.clear();
        }
        print("ranges", "whole", ranges.seconds, whole.seconds);
        return 0;
    }
    Peer parts(devices[0], words[1], how, with_shards),
        batches(devices[0], words[1], how, with_batches);
    for (int round = -1; round < rounds; ++round) {
        // Each is the first one as often as the other.
        (round % 2 == 0 ? parts : batches).run(shards);
        (round % 2 == 0 ? batches : parts).run(shards);
        if (round < 0) parts.seconds.clear(), batches.seconds.clear();  // engines are new
    }
    print("shards", "accumulate", parts.seconds, batches.seconds);
    return 0;
} catch (const std::exception& error) {
    std::fprintf(stderr, "shards: %s\n", error.what());
    return 1;
}
