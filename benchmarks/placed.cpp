// SPDX-License-Identifier: MIT
// What it brings to cut a network over several devices whose parts work at once on the shards of a
// batch: images a second of one device with the same shards, beside those of all devices. Peers are
// interleaved, and medians compared.
//
//   placed NET DEVICES FIRST[,FIRST...] BATCH SHARDS PRECISION ROUNDS
//     DEVICES as a command's -d without names: "0:0,0:1"; FIRST is the first operator of the second
//     device's part, and so on; BATCH is that of all shards together.
//
//   g++ -std=c++20 -O2 -Iinclude benchmarks/placed.cpp -Lbuild/src -ldlprim_core -o placed
//   LD_LIBRARY_PATH=build/src ./placed examples/nets/vgg16.json 0:0,0:1 features.12 64 8 fp32 20
#include "steps.hpp"

#include <dlprim/net.hpp>
#include <dlprim/placed_net.hpp>
#include <dlprim/solver.hpp>
#include <dlprim/team.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace dp = dlprim;

namespace {

std::vector<std::string> split(const std::string& text) {
    std::vector<std::string> all(1);
    for (const char letter : text) {
        if (letter == ',')
            all.emplace_back();
        else
            all.back() += letter;
    }
    return all;
}

/// The network with the device of each operator: a new one from each operator of `first` on.
std::string placed(const char* path, const std::vector<std::string>& first) {
    std::ifstream file(path);
    std::string json{std::istreambuf_iterator<char>(file), {}};
    std::size_t device = 0;
    const std::string key = "{\"name\": \"";
    for (std::size_t at = json.find("\"operators\""); (at = json.find(key, at)) != json.npos;) {
        const std::size_t begin = at + key.size();
        const std::string name = json.substr(begin, json.find('"', begin) - begin);
        if (device < first.size() && name == first[device]) ++device;
        const std::string word = "\"device\": \"d" + std::to_string(device) + "\", ";
        json.insert(at + 1, word);
        at = begin + word.size();
    }
    if (device < first.size())
        throw std::runtime_error("the network has no operator " + first[device]);
    return json;
}

struct Peer {
    std::string name;
    std::function<void()> step;
    std::vector<double> ms;

    void run() {
        const auto begin = std::chrono::steady_clock::now();
        step();
        const std::chrono::duration<double, std::milli> passed =
            std::chrono::steady_clock::now() - begin;
        ms.push_back(passed.count());
    }
};

template <typename AnyNet>
void feed(AnyNet& net) {
    for (const std::string& name : net.input_names()) {
        if (net.input_dtype(name) != dp::DType::f32) continue;
        std::vector<float> values(static_cast<std::size_t>(net.input_shape(name).numel()));
        std::uint32_t state = 1;
        for (float& value : values) {
            state = state * 1664525 + 1013904223;
            value = static_cast<float>(state >> 8) / 8388608.0f - 1;
        }
        net.set_input(name, values.data(), values.size() * sizeof(float));
    }
}

}  // namespace

int main(int count, char** words) try {
    if (count != 8) {
        std::fprintf(stderr,
                     "usage: placed NET DEVICES FIRST[,FIRST...] BATCH SHARDS PRECISION ROUNDS\n");
        return 2;
    }
    const std::vector<std::string> first = split(words[3]);
    const int batch = std::atoi(words[4]), rounds = std::atoi(words[7]);
    dp::SolverOptions options;  // Adam
    options.shards = std::atoi(words[5]);
    dp::NetOptions how;
    how.mode = dp::Mode::training;
    how.batch = batch / options.shards;
    how.precision = dp::parse_precision(words[6]);

    const std::vector<dp::Context> contexts = dp::open_devices(words[2]);
    std::vector<dp::NamedDevice> devices;
    for (std::size_t i = 0; i < contexts.size(); ++i)
        devices.push_back({"d" + std::to_string(i), contexts[i]});
    const dp::Context alone(contexts[0].info().id);

    dp::Net one = dp::Net::from_json_file(alone, words[1], how);
    one.initialize();
    dp::Solver solver(one, options);
    feed(one);
    dp::PlacedNet all = dp::PlacedNet::from_json(devices, placed(words[1], first), how);
    all.initialize();
    dp::PlacedSolver placed_solver(all, options);
    feed(all);
    for (const dp::PlacedNet::Part& part : all.parts())
        std::printf("part on %s: %s to %s\n", all.device(part.device).info().str().c_str(),
                    part.operators.front().c_str(), part.operators.back().c_str());
    for (const auto& [name, bytes] : all.planned_peak_bytes())
        std::printf("planned peak of %s: %.1f MiB\n", name.c_str(),
                    static_cast<double>(bytes) / (1 << 20));

    std::vector<Peer> peers;
    peers.push_back({"one device",
                     [&] {
                         for (int shard = 0; shard < options.shards; ++shard) solver.step();
                         alone.finish();
                     },
                     {}});
    peers.push_back({"all devices",
                     [&] {
                         for (int shard = 0; shard < options.shards; ++shard) placed_solver.step();
                         for (const dp::Context& context : contexts) context.finish();
                     },
                     {}});
    for (int round = -2; round < rounds; ++round) {
        for (std::size_t i = 0; i < peers.size(); ++i)
            peers[(i + static_cast<std::size_t>(round + 2)) % peers.size()].run();
        for (Peer& peer : peers)
            if (round < 0) peer.ms.clear();  // engines are new
        if (round > -2) continue;
        const std::string loss = all.loss_names().at(0);
        std::printf("loss of the first step: %.9g and %.9g\n",
                    static_cast<double>(one.output(loss).to_floats()[0]),
                    static_cast<double>(all.output(loss).to_floats()[0]));
    }
    const double before = median(peers[0].ms);
    for (const Peer& peer : peers) {
        const auto [least, most] = std::minmax_element(peer.ms.begin(), peer.ms.end());
        const double own = median(peer.ms);
        std::printf("%-12s %9.3f ms (%.3f to %.3f), %8.1f images/s, %.3f of one\n",
                    peer.name.c_str(), own, *least, *most, batch * 1000 / own, before / own);
    }
    return 0;
} catch (const std::exception& error) {
    std::fprintf(stderr, "placed: %s\n", error.what());
    return 1;
}
