// SPDX-License-Identifier: MIT
// predict_step().
#include "api/scale/model.hpp"
#include "api/scale/step_work.hpp"
#include "base/text.hpp"
#include "formats/trace_file.hpp"

#include <dlprim/scale.hpp>
#include <dlprim/version.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

namespace dlprim {

namespace {

/// Powers of two up to `most`, and `most`.
std::vector<int> usual_numbers(int most) {
    std::vector<int> numbers;
    for (int n = 1; n < most; n *= 2) numbers.push_back(n);
    numbers.push_back(most);
    return numbers;
}

/// What parse_cluster() sees to, of a cluster that a program has put together.
void check(const Cluster& cluster) {
    const auto positive = [](double value) { return std::isfinite(value) && value > 0; };
    std::int64_t devices = 1;
    for (const ClusterLevel& level : cluster.levels) {
        require(level.count >= 1 && positive(level.gbytes_per_s) &&
                    std::isfinite(level.latency_us) && level.latency_us >= 0,
                "level '", level.name,
                "' of the cluster needs a count and gbytes_per_s above 0, and a latency_us of at "
                "least 0");
        require(level.count <= most_devices && (devices *= level.count) <= most_devices,
                "the cluster has more than ", most_devices, " devices, which are not predicted");
    }
    for (std::size_t i = 1; i < cluster.levels.size(); ++i)
        require(cluster.levels[i].way == ClusterLevel::Way::transport, "level '",
                cluster.levels[i].name,
                "' of the cluster exchanges through memory: only devices of the first level can");
    const auto amount = [](double value) { return std::isfinite(value) && value >= 0; };
    require(amount(cluster.wake_us) && amount(cluster.copies_gbytes_per_s) &&
                amount(cluster.digests_gbytes_per_s),
            "wake_us, copies_gbytes_per_s and digests_gbytes_per_s of the cluster must be at least "
            "0");
    require(!cluster.has_times() ||
                (cluster.gflops == 0 && cluster.backward_ms >= 0 && cluster.update_ms >= 0 &&
                 positive(cluster.forward_ms + cluster.backward_ms + cluster.update_ms)),
            "measured times of the cluster's devices are those of forward, backward and update, in "
            "the place of gflops");
    require(cluster.gflops == 0 || (positive(cluster.gflops) && positive(cluster.gbytes_per_s)),
            "the peaks of the cluster's devices, gflops and gbytes_per_s, must both be above 0");
}

std::string trace_of(std::vector<TraceSpan> spans, const Cluster& cluster, int devices) {
    const int shown = std::min(devices, traced_devices);
    std::vector<TraceRank> ranks;
    ranks.reserve(static_cast<std::size_t>(shown));
    for (int i = 0; i < shown; ++i)
        ranks.push_back({static_cast<std::size_t>(i), cat("rank ", i, ": ", cluster.device)});
    return trace_text(ranks, std::move(spans),
                      {{"program", cat("dlprim ", DLPRIM_VERSION)},
                       {"what", cat("a training step on ", devices,
                                    devices == 1 ? " device" : " devices", ", predicted")}});
}

}  // namespace

ScaleReport predict_step(Net& net, const Cluster& cluster, const ScaleOptions& options) {
    require(net.options().mode == Mode::training,
            "a step is predicted of a net that was opened for training");
    check(cluster);
    require(options.measure || cluster.has_times() || cluster.gflops > 0,
            "nothing says what a device of the cluster computes: describe it as \"device\", or "
            "measure on one");
    require(options.shards >= 0 && options.shards <= (1 << 20), "shards is ", options.shards,
            ": it must be at least 1, and at most ", 1 << 20);
    const auto all = static_cast<int>(cluster.devices());
    ScaleReport report;
    report.shards = options.shards > 0 ? options.shards : all;
    const std::vector<int> numbers =
        options.devices.empty() ? usual_numbers(std::min(all, report.shards)) : options.devices;
    for (const int devices : numbers) {
        require(devices >= 1 && devices <= all, "the cluster has ", all,
                all == 1 ? " device" : " devices", ": a step on ", devices, " cannot be predicted");
        require(devices <= report.shards, "a batch of ", report.shards,
                report.shards == 1 ? " shard" : " shards", " cannot be spread over ", devices,
                " devices: each computes at least one");
    }
    const StepWork work = work_of_step(net, cluster, options, report.shards);
    report.forward_ms = work.forward * 1e3;
    report.backward_ms = work.backward * 1e3;
    report.update_ms = work.update * 1e3;
    report.gradient_bytes = work.bytes();
    for (const StepWork::Part& part : work.parts)
        report.parts.push_back({part.bytes, part.ready * 1e3});
    report.source = work.source;
    const double alone = model_step(work, cluster, {report.shards, 1, options.direct}).step_ms;
    std::vector<TraceSpan> spans;
    for (const int devices : numbers) {
        spans.clear();
        ScalePoint point =
            model_step(work, cluster, {report.shards, devices, options.direct}, &spans);
        point.efficiency = alone / (point.step_ms * devices);
        report.points.push_back(std::move(point));
    }
    report.trace = trace_of(std::move(spans), cluster, numbers.back());
    return report;
}

}  // namespace dlprim
