// SPDX-License-Identifier: MIT
// predict_step(): how long a training step would take on a described cluster, and what bounds it.
// It is what the command dlprim_scale does; docs/scale.md has the model and the cluster's file.
//
// All types are plain data that belongs to the caller.
#pragma once

#include <dlprim/namespace.hpp>
#include <dlprim/net.hpp>
#include <dlprim/solver_options.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace dlprim {

/// Members that links join: devices at the first level, and at each other one all that the level
/// below joins, such as the hosts of a rack.
struct ClusterLevel {
    /// How its members exchange sums. Devices of the first level may share memory of their host, or
    /// their kernels may reach each other's; then the link is a device's way there.
    enum class Way { transport, pinned, peer };
    std::string name;
    int count = 1;            ///< members
    double gbytes_per_s = 0;  ///< of the link of one member, in each direction at once, in 10^9
    double latency_us = 0;    ///< of a message between devices of two members
    Way way = Way::transport;
};

/// Devices of a kind. Either the peaks say what they compute, or times of a real step do.
struct Cluster {
    std::string device;       ///< the name of the kind, for texts
    double gflops = 0;        ///< 10^9 operations per second; 0: not given
    double gbytes_per_s = 0;  ///< of a device's memory, in 10^9; 0: not given
    /// Of one shard and of the update, measured; negative: not given.
    double forward_ms = -1, backward_ms = -1, update_ms = -1;
    double wake_us = 0;  ///< until the host knows that a device, or another thread, is done
    /// Between a device and its host, for what a transport moves, in 10^9; 0: takes no time.
    double copies_gbytes_per_s = 0;
    /// Of the digests that a transport makes of all bytes, in 10^9; 0: they take no time.
    double digests_gbytes_per_s = 0;
    std::vector<ClusterLevel> levels;  ///< the innermost first; none: a single device

    std::int64_t devices() const;
    bool has_times() const { return forward_ms >= 0; }
};

/// Reads a cluster from JSON. Throws Error(format) that names file, line and key; Error(io),
/// Error(not_found) for a file that cannot be read.
Cluster read_cluster(const std::string& path);
/// The same from text; `source` stands for the path in messages.
Cluster parse_cluster(std::string_view text, const std::string& source);

struct ScaleOptions {
    /// Of a batch, each of which is a batch of the network; 0: as many as the cluster has devices.
    int shards = 0;
    /// The numbers of devices to predict for; empty: powers of two, and all of them.
    std::vector<int> devices;
    /// The solver whose update ends a step. Its shards are those above.
    SolverOptions solver;
    /// Whether to run and time a shard on the network's device, in place of what the cluster says.
    bool measure = false;
    std::uint64_t range_bytes = std::uint64_t{32} << 20;  ///< as TeamOptions::range_bytes
    /// Whether all devices exchange with all, in place of level by level.
    bool direct = false;
};

/// A step on some of the cluster's devices, which fill its innermost groups first.
struct ScalePoint {
    int devices = 1;
    double step_ms = 0;
    double compute_ms = 0;   ///< of the device with the most shards
    double exchange_ms = 0;  ///< in which sums are moved and added, beside computing or not
    double wait_ms = 0;      ///< of the step, in which that device waits for the exchange
    double efficiency = 1;   ///< the time of one device by that of all of these together
    /// What is busy for the longest part of the step: "compute", "additions", "copies", "digests",
    /// "waking", "link of LEVEL" or "latency of LEVEL".
    std::string bound;
};

struct ScaleReport {
    /// What leaves a device at once.
    struct Part {
        double bytes = 0;
        double ready_ms = 0;  ///< since backward began
    };
    int shards = 1;
    double forward_ms = 0, backward_ms = 0, update_ms = 0;  ///< of a shard, and of the update
    double gradient_bytes = 0;  ///< that each shard adds: gradients, statistics, losses
    std::vector<Part> parts;    ///< in which they leave, in this order
    std::string source;         ///< "measured on ...", "times of ...", "least times of ..."
    std::vector<ScalePoint> points;
    /// The step of the last point in Chrome's trace event format, as TrainCall::trace has real
    /// ones, of the first 16 devices.
    std::string trace;
};

/// Predicts the step of a network that was opened in Mode::training with the batch of one shard.
/// Plans it without allocating, unless `measure` makes it run; then it becomes a net with a solver,
/// and its parameters are initialised. As a call on the Net it is for one thread at a time. Throws
/// Error(invalid_argument) for numbers that do not fit each other, and what planning throws.
ScaleReport predict_step(Net& net, const Cluster& cluster, const ScaleOptions& options = {});

}  // namespace dlprim
