// SPDX-License-Identifier: MIT
// A training run has the same bits in every process, whether kernels are compiled or loaded from a
// cache.
#include "net/support.hpp"

#include <cstdio>
#include <sstream>

using namespace dlprim;
using namespace dlprim::testing;

namespace {

struct Outcome {
    std::string hash;
    int compiles = -1, cache_hits = -1;
};

/// Trains in a separate process, with its kernel caches in `cache`.
Outcome train(const std::string& device, const std::string& cache) {
    std::filesystem::create_directories(cache + "/driver");
    const std::string command = "DLPRIM_CACHE_DIR='" + cache + "' POCL_CACHE_DIR='" + cache +
                                "/driver' '" + DLPRIM_TRAIN_HASH + "' '" + device + "'";
    std::FILE* pipe = popen(command.c_str(), "r");
    REQUIRE(pipe != nullptr);
    std::string text;
    char block[256];
    while (std::fgets(block, sizeof(block), pipe) != nullptr) text += block;
    CHECK(pclose(pipe) == 0);
    Outcome outcome;
    std::istringstream(text) >> outcome.hash >> outcome.compiles >> outcome.cache_hits;
    return outcome;
}

}  // namespace

TEST_CASE("processes with cold and warm caches train the same bits", "[determinism]") {
    ON_EVERY_DEVICE(device) {
        const Folder first, second;
        const Outcome cold = train(device.info().id, first.file("cache"));
        const Outcome warm = train(device.info().id, first.file("cache"));
        const Outcome elsewhere = train(device.info().id, second.file("cache"));
        CHECK(cold.hash.size() > 8);
        CHECK(warm.hash == cold.hash);
        CHECK(elsewhere.hash == cold.hash);
        if (device.info().id == "cpu") continue;
        CHECK(cold.compiles > 0);
        CHECK(warm.compiles == 0);
        CHECK(warm.cache_hits > 0);
        CHECK(elsewhere.compiles > 0);
    }
}

TEST_CASE("two nets of one process train the same bits, another seed others", "[determinism]") {
    ON_EVERY_DEVICE(device) {
        const auto trained = [&](std::uint64_t seed) {
            Net net = make_net(device, small_network, training(seed));
            Solver solver(net, {});
            for (unsigned step = 0; step < 5; ++step) {
                feed_small_network(net, step);
                solver.step();
            }
            return all_bits(net);
        };
        const auto once = trained(1);
        CHECK((trained(1) == once));
        CHECK((trained(2) != once));
    }
}
