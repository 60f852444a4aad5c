// SPDX-License-Identifier: MIT
// What shards cost: the time of S shards by one update over that of S batches with `accumulate`, on
// one device. Both compute the same shapes; peers are interleaved, and medians compared.
//
//   shards NET DEVICE BATCH SHARDS ROUNDS
#include <dlprim/net.hpp>
#include <dlprim/solver.hpp>

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

double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
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
        for (const std::string& name : net.input_names()) {
            dp::Tensor input = net.input(name);
            if (input.dtype() != dp::DType::f32) continue;  // labels stay 0
            std::vector<float> values(static_cast<std::size_t>(input.shape().numel()));
            std::uint32_t state = 1;
            for (float& value : values) {
                state = state * 1664525 + 1013904223;
                value = static_cast<float>(state >> 8) / 8388608.0f - 1;
            }
            input.copy_from(values);
        }
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
    const dp::Context context(words[2]);
    dp::NetOptions how;
    how.mode = dp::Mode::training;
    how.batch = std::atoi(words[3]);
    dp::SolverOptions with_shards, with_batches;
    with_shards.shards = shards;
    with_batches.accumulate = shards;
    Peer parts(context, words[1], how, with_shards), batches(context, words[1], how, with_batches);
    for (int round = -1; round < rounds; ++round) {
        // Each is the first one as often as the other.
        (round % 2 == 0 ? parts : batches).run(shards);
        (round % 2 == 0 ? batches : parts).run(shards);
        if (round < 0) parts.seconds.clear(), batches.seconds.clear();  // engines are new
    }
    std::printf("ms of shards, accumulate:");
    for (int i = 0; i < rounds; ++i)
        std::printf(" %.1f,%.1f", 1e3 * parts.seconds[i], 1e3 * batches.seconds[i]);
    std::printf("\n");
    std::vector<double> ratios;
    for (std::size_t i = 0; i < parts.seconds.size(); ++i)
        ratios.push_back(parts.seconds[i] / batches.seconds[i]);
    std::printf(
        "%s on %s, %d x %d: shards %.2f ms, accumulate %.2f ms, median of the rounds' ratios "
        "%.4f\n",
        words[1], context.info().str().c_str(), shards, std::atoi(words[3]),
        1e3 * median(parts.seconds), 1e3 * median(batches.seconds), median(ratios));
    return 0;
} catch (const std::exception& error) {
    std::fprintf(stderr, "shards: %s\n", error.what());
    return 1;
}
