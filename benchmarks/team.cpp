// SPDX-License-Identifier: MIT
// What it costs to train on several devices: a step of one device alone, beside a step of the same
// batch on each of several devices by the ways in which their gradients can travel. Peers are
// interleaved, and medians compared.
//
//   team NET DEVICES BATCH PRECISION ROUNDS [STEPS]
//     DEVICES as a command's -d: "gpus" or "0:0,0:1"; STEPS in a row before the program waits (1).
//     With DLPRIM_PINNED=0 in the environment, the host's way is plain memory.
//
// In as many processes as there are devices (torchrun --no-python, or its variables set by hand),
// a step of one device in each process comes to these. The first process has all the others.
#include "steps.hpp"

#include <dlprim/net.hpp>
#include <dlprim/processes.hpp>
#include <dlprim/solver.hpp>
#include <dlprim/team.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace dp = dlprim;

namespace {

/// A team, whose gradients travel by the best way that the environment allows now, with a shard for
/// each of its devices.
struct Peer {
    std::string name;
    std::unique_ptr<dp::Team> team;
    std::vector<double> ms;

    Peer(std::string what, const std::vector<dp::Context>& devices, const char* path,
         const dp::NetOptions& how, const dp::Processes& processes = {})
        : name(std::move(what)) {
        dp::SolverOptions options;  // Adam
        options.shards = static_cast<int>(devices.size()) * processes.size();
        dp::TeamOptions team_options;
        team_options.processes = processes;
        const auto begin = std::chrono::steady_clock::now();
        team = std::make_unique<dp::Team>(
            devices,
            [&](const dp::Context& context, int) {
                return dp::Net::from_json_file(context, path, how);
            },
            options, team_options);
        team->net(0).initialize();
        team->share_state();
        for (int rank = 0; rank < team->size(); ++rank) set_inputs(team->net(rank));
        const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin;
        std::printf("%s: opened in %.1f s\n", name.c_str(), passed.count());
        for (const std::string& note : team->notes()) std::printf("    %s\n", note.c_str());
        std::fflush(stdout);
    }

    void run(int steps) {
        const auto begin = std::chrono::steady_clock::now();
        for (int i = 0; i < steps; ++i) team->step([](int, int) {});
        for (int rank = 0; rank < team->size(); ++rank)
            (void)team->net(rank).output(team->net(rank).loss_names().at(0)).to_floats();
        const std::chrono::duration<double, std::milli> passed =
            std::chrono::steady_clock::now() - begin;
        ms.push_back(passed.count() / steps);
    }
};

}  // namespace

int main(int count, char** words) try {
    if (count != 6 && count != 7) {
        std::fprintf(stderr, "usage: team NET DEVICES BATCH PRECISION ROUNDS [STEPS]\n");
        return 2;
    }
    const int rounds = std::atoi(words[5]), steps = count == 7 ? std::atoi(words[6]) : 1;
    dp::NetOptions how;
    how.mode = dp::Mode::training;
    how.batch = std::atoi(words[3]);
    how.precision = dp::parse_precision(words[4]);
    const auto open = [&] { return dp::open_devices(words[2]); };
    std::vector<Peer> peers;
    const std::vector<dp::Context> devices = open();
    dp::Processes processes = dp::Processes::join();
    const bool is_first = processes.rank() == 0;
    if (is_first) {
        for (const dp::Context& device : devices) std::printf("%s ", device.info().str().c_str());
        std::printf("%s, %s, %s each\n", words[1], words[4], words[3]);
        peers.emplace_back("one alone", std::vector<dp::Context>{devices[0]}, words[1], how);
    }
    if (is_first && devices.size() > 1) {
        setenv("DLPRIM_PEER", "1", 1);
        peers.emplace_back("together", open(), words[1], how);  // through peers' memory if it works
        setenv("DLPRIM_PEER", "0", 1);
        peers.emplace_back("together, through the host", open(), words[1], how);
    }
    if (processes.size() > 1) {
        const auto own = static_cast<std::size_t>(processes.local_rank());
        if (own >= devices.size())
            throw std::invalid_argument("DEVICES must name one for each process of a host");
        peers.emplace_back(processes.text(), std::vector<dp::Context>{devices.at(own)}, words[1],
                           how, processes);
    }
    for (int round = -2; round < rounds; ++round) {
        for (std::size_t i = 0; i < peers.size(); ++i)
            peers[(i + static_cast<std::size_t>(round + 2)) % peers.size()].run(steps);
        for (Peer& peer : peers)
            if (round < 0) peer.ms.clear();  // engines are new
    }
    processes.leave();
    if (!is_first) return 0;
    const double alone = median(peers[0].ms);
    for (const Peer& peer : peers) {
        std::vector<double> sorted = peer.ms;
        std::sort(sorted.begin(), sorted.end());
        const double own = median(peer.ms);
        std::printf("%-28s %8.3f ms (%.3f to %.3f), alone / this %.4f, lost %.3f ms\n",
                    peer.name.c_str(), own, sorted.front(), sorted.back(), alone / own,
                    own - alone);
    }
    return 0;
} catch (const std::exception& error) {
    std::fprintf(stderr, "team: %s\n", error.what());
    return 1;
}
