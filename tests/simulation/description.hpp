// SPDX-License-Identifier: MIT
// Description: what is simulated. benchmarks/simulate.py writes it as a file of words, which both
// the ranks and the platform read: DLPRIM_SIMULATION in the environment names it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace dlprim::simulation {

/// How the members of a level exchange sums.
enum class Way { transport, pinned, peer };

/// As dlprim::ClusterLevel, in bytes and seconds.
struct Level {
    std::string name;
    int count = 1;
    double rate = 0;     ///< bytes per second of a member's link, in each direction
    double latency = 0;  ///< of a message between devices of two members
    Way way = Way::transport;
};

/// What leaves a device at once: losses and statistics, or a range of the gradients.
struct Part {
    double bytes = 0;
    double ready = 0;  ///< since backward began
};

struct Description {
    int devices = 1;
    int shards = 1;                                ///< of a batch, as many for each device
    double forward = 0, backward = 0, update = 0;  ///< of a shard, and of the update
    double memory = 0;    ///< bytes per second that additions read and write; 0: they take no time
    double wake = 0;      ///< until the host knows that a device, or another thread, is done
    double copies = 0;    ///< bytes per second between a device and its host; 0: no time
    double digests = 0;   ///< bytes per second of the transport's digests; 0: no time
    bool direct = false;  ///< whether all devices exchange with all, in place of level by level
    /// A simulated byte stands for so many of the real step, and links are so many times slower.
    /// So that ranks need less memory; headers of messages then take longer.
    int fold = 1;
    std::vector<Level> levels;  ///< the innermost first
    std::vector<Part> parts;    ///< in the order in which they leave
};

/// Throws std::runtime_error that names what is wrong.
Description read_description();

}  // namespace dlprim::simulation
