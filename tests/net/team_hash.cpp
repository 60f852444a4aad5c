// SPDX-License-Identifier: MIT
// Trains a small network in a team, which other processes may belong to, and prints a hash of all
// parameters' bits of each of its ranks. A test starts several of this program.
//
//   net_team_hash DEVICE CONTEXTS whole|sharded|measured
//
// CONTEXTS is how many ranks of the team this process has, all on the device.
#include <dlprim/dlprim.hpp>
#include <dlprim/processes.hpp>
#include <dlprim/team.hpp>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <vector>

namespace {

constexpr int shards = 7;

const char* const network = R"({
  "inputs": [{"name": "data", "shape": [4, 20]}, {"name": "target", "shape": [4, 3]}],
  "outputs": ["loss"],
  "operators": [
    {"name": "hidden", "type": "InnerProduct", "inputs": ["data"], "outputs": ["hidden"],
     "options": {"outputs": 40}},
    {"name": "norm", "type": "BatchNorm", "inputs": ["hidden"], "outputs": ["norm"]},
    {"name": "drop", "type": "Dropout", "inputs": ["norm"], "outputs": ["drop"]},
    {"name": "y", "type": "InnerProduct", "inputs": ["drop"], "outputs": ["y"],
     "options": {"outputs": 3}},
    {"name": "loss", "type": "MSELoss", "inputs": ["y", "target"], "outputs": ["loss"]}
  ]
})";

void feed(dp::Net& net, const char* input, int step, int shard) {
    std::vector<float> values(static_cast<std::size_t>(net.input_shape(input).numel()));
    for (std::size_t i = 0; i < values.size(); ++i)
        values[i] =
            static_cast<float>((i * 31 + static_cast<std::size_t>(step * 17 + shard * 7)) % 23) /
            11;
    net.input(input).copy_from(values);
}

std::uint64_t hash_of(dp::Net& net) {
    std::uint64_t hash = 14695981039346656037u;
    for (const std::string& name : net.param_names())
        for (const std::byte byte : net.read_param(name).data)
            hash = (hash ^ static_cast<std::uint64_t>(byte)) * 1099511628211u;
    return hash;
}

void train(const char* device, int contexts, std::string_view how, const dp::Processes& processes) {
    std::vector<dp::Context> devices;
    devices.reserve(static_cast<std::size_t>(contexts));
    for (int i = 0; i < contexts; ++i) devices.emplace_back(device);
    dp::SolverOptions solver;
    solver.shards = shards;
    dp::TeamOptions options;
    options.processes = processes;
    options.sharded_states = how == "sharded";
    options.measure_shards = how == "measured";
    dp::NetOptions training;
    training.mode = dp::Mode::training;
    dp::Team team(
        devices,
        [&](const dp::Context& context, int) {
            dp::Net net = dp::Net::from_json(context, network, training);
            net.initialize();
            return net;
        },
        solver, options);
    team.share_state();
    for (int step = 0; step < 3; ++step)
        team.step([&](int rank, int shard) {
            feed(team.net(rank), "data", step, shard);
            feed(team.net(rank), "target", step + 5, shard);
        });
    for (int rank = 0; rank < team.size(); ++rank)
        std::printf("%016llx\n", static_cast<unsigned long long>(hash_of(team.net(rank))));
}

}  // namespace

int main(int argc, char** argv) try {
    if (argc != 4) {
        std::fprintf(stderr, "usage: net_team_hash DEVICE CONTEXTS whole|sharded|measured\n");
        return 2;
    }
    dp::Processes processes = dp::Processes::join();
    try {
        train(argv[1], std::atoi(argv[2]), argv[3], processes);
        processes.leave();
    } catch (const dp::Error& error) {
        std::fprintf(stderr, "net_team_hash: %s\n", processes.failed(error.what(), 1).text.c_str());
        return 1;
    }
    return 0;
} catch (const dp::Error& error) {
    std::fprintf(stderr, "net_team_hash: %s\n", error.what());
    return 1;
}
