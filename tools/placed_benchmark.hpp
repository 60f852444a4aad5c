// SPDX-License-Identifier: MIT
// Measures a network whose operators run on several devices: the time of a batch, what moves
// between the devices, and the memory of each.
#pragma once

#include "benchmark_support.hpp"

#include <dlprim/dlprim.hpp>

#include <optional>
#include <string>

namespace dlprim::tools {

struct PlacedBenchmark {
    std::string device;  ///< with names, as open_named_devices() takes it
    std::string net, weights;
    bool backward = false;
    std::optional<SolverOptions> solver;  ///< given: whole training steps
    NetOptions how;                       ///< without the mode
    PlacementOptions placement;
    int iterations = 20, warmup = 5;
};

/// "training step (Adam)", "forward and backward", "inference".
const char* what_is_measured(const PlacedBenchmark& options);

/// Prints the results. `start` is when the command began.
void run_placed_benchmark(const PlacedBenchmark& options, Clock::time_point start);

}  // namespace dlprim::tools
