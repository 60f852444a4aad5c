// SPDX-License-Identifier: MIT
// Reading the description of a cluster.
#include "api/scale/model.hpp"
#include "base/env.hpp"
#include "base/text.hpp"
#include "formats/json_tree.hpp"

#include <dlprim/scale.hpp>

#include <cmath>

namespace dlprim {

namespace {

double amount(const JsonView& view, bool may_be_zero) {
    const double value = view.number();
    if (!std::isfinite(value) || (may_be_zero ? value < 0 : value <= 0))
        view.fail(
            cat("is ", value, ", must be a number ", may_be_zero ? "of at least" : "above", " 0"));
    return value;
}

void read_device(const JsonView& view, Cluster& cluster) {
    view.object({"name", "gflops", "gbytes_per_s", "forward_ms", "backward_ms", "update_ms",
                 "wake_us", "copies_gbytes_per_s", "digests_gbytes_per_s"});
    if (const auto name = view.find("name")) cluster.device = name->name();
    if (const auto flops = view.find("gflops")) cluster.gflops = amount(*flops, false);
    if (const auto bytes = view.find("gbytes_per_s")) cluster.gbytes_per_s = amount(*bytes, false);
    if (const auto wake = view.find("wake_us")) cluster.wake_us = amount(*wake, true);
    if (const auto copies = view.find("copies_gbytes_per_s"))
        cluster.copies_gbytes_per_s = amount(*copies, true);
    if (const auto digests = view.find("digests_gbytes_per_s"))
        cluster.digests_gbytes_per_s = amount(*digests, true);
    if (const auto forward = view.find("forward_ms")) {
        cluster.forward_ms = amount(*forward, true);
        cluster.backward_ms = amount(view.at("backward_ms"), true);
        cluster.update_ms = amount(view.at("update_ms"), true);
        if (cluster.forward_ms + cluster.backward_ms + cluster.update_ms == 0)
            view.fail(
                "computes in no time: one of forward_ms, backward_ms and update_ms must be "
                "above 0");
        if (cluster.gflops > 0)
            view.fail("has gflops and measured times: only one of them can say what it computes");
        return;
    }
    if (view.find("backward_ms") || view.find("update_ms"))
        view.fail(
            "has times of some parts of a step: forward_ms, backward_ms and update_ms belong "
            "together");
    if (cluster.gflops == 0 || cluster.gbytes_per_s == 0)
        view.fail(
            "needs gflops and gbytes_per_s, its peaks, or the measured forward_ms, "
            "backward_ms and update_ms");
}

ClusterLevel::Way read_way(const JsonView& view, std::size_t index) {
    using Way = ClusterLevel::Way;
    const std::string& name = view.name();
    if (name == "transport") return Way::transport;
    if (name != "pinned" && name != "peer")
        view.fail(cat("is '", name, "': a level's way is transport, pinned or peer"));
    if (index > 0) view.fail("is that of memory, which only devices of the first level share");
    return name == "peer" ? Way::peer : Way::pinned;
}

ClusterLevel read_level(const JsonView& view, std::size_t index) {
    view.object({"name", "count", "gbytes_per_s", "latency_us", "way"});
    ClusterLevel level;
    level.name = cat("level ", index + 1);
    if (const auto name = view.find("name")) level.name = name->name();
    const std::int64_t count = view.at("count").integer();
    if (count < 2 || count > most_devices)
        view.at("count").fail(cat("is ", count, ", must be an integer of at least 2 and at most ",
                                  most_devices, ": a level joins several members"));
    level.count = static_cast<int>(count);
    level.gbytes_per_s = amount(view.at("gbytes_per_s"), false);
    if (const auto latency = view.find("latency_us")) level.latency_us = amount(*latency, true);
    if (const auto way = view.find("way")) level.way = read_way(*way, index);
    return level;
}

}  // namespace

std::int64_t Cluster::devices() const {
    std::int64_t all = 1;
    for (const ClusterLevel& level : levels) all *= level.count;
    return all;
}

Cluster parse_cluster(std::string_view text, const std::string& source) {
    const JsonDocument document(text, source);
    const JsonView root = document.root();
    root.object({"device", "levels"});
    Cluster cluster;
    cluster.device = "a device";
    if (const auto device = root.find("device")) read_device(*device, cluster);
    const auto levels = root.find("levels");
    if (!levels) return cluster;
    for (const JsonView& level : levels->array()) {
        cluster.levels.push_back(read_level(level, cluster.levels.size()));
        if (cluster.devices() > most_devices)
            level.fail(cat("makes a cluster of ", cluster.devices(), " devices: at most ",
                           most_devices, " can be predicted"));
    }
    return cluster;
}

Cluster read_cluster(const std::string& path) {
    return parse_cluster(read_file(path, std::uint64_t{1} << 20), path);
}

}  // namespace dlprim
