// SPDX-License-Identifier: MIT
// Runs one sample through a network with initialised parameters. That is the least that a program
// does before its first result. A test starts this program twice and measures the time.
//
//   net_first_result DEVICE NET.json
//
// Prints how many programs were compiled and how many came from the cache.
#include <dlprim/dlprim.hpp>

#include <cstdio>

int main(int argc, char** argv) try {
    if (argc != 3) {
        std::fprintf(stderr, "usage: net_first_result DEVICE NET.json\n");
        return 2;
    }
    const dp::Context device(argv[1]);
    dp::NetOptions options;
    options.batch = 1;
    dp::Net net = dp::Net::from_json_file(device, argv[2], options);
    net.initialize();
    for (const std::string& name : net.input_names()) net.input(name).fill(0);
    net.forward();
    if (net.output(net.output_names().at(0)).to_floats().empty()) return 1;
    const dp::Counters counters = device.counters();
    std::printf("%llu %llu\n", static_cast<unsigned long long>(counters.compiles),
                static_cast<unsigned long long>(counters.cache_hits));
    return 0;
} catch (const dp::Error& error) {
    std::fprintf(stderr, "net_first_result: %s\n", error.what());
    return 1;
}
