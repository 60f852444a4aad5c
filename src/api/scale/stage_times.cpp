// SPDX-License-Identifier: MIT
// StageTimes. By a transport, what others add goes to the host first, then over the links, and then
// to the device; in memory of the host, all sums go there, and after a barrier each device gets its
// part of those of others; where kernels reach each other's memory, they read it in the additions.
#include "api/scale/stage_times.hpp"

#include "base/text.hpp"

#include <algorithm>

namespace dlprim {

void Busy::add(const std::string& what, double seconds) {
    for (auto& [name, sum] : all_)
        if (name == what) return void(sum += seconds);
    all_.emplace_back(what, seconds);
}

std::string Busy::most() const {
    return std::max_element(all_.begin(), all_.end(),
                            [](const auto& a, const auto& b) { return a.second < b.second; })
        ->first;
}

double StageTimes::wakes(int count) {
    const double seconds = count * cluster_.wake_us * 1e-6;
    if (seconds > 0) busy_.add("waking", seconds);
    return seconds;
}

double StageTimes::link(const std::string& level, double seconds) {
    busy_.add(cat("link of ", level), seconds);
    return seconds;
}

/// The latency of the outermost level that messages cross, or of a later one within it.
double StageTimes::late(std::size_t level, int messages) {
    double latency = 0;
    std::size_t which = level;
    for (std::size_t i = 0; i <= level; ++i) {
        if (cluster_.levels[i].latency_us < latency) continue;
        latency = cluster_.levels[i].latency_us;
        which = i;
    }
    const double seconds = messages * latency * 1e-6;
    if (seconds > 0) busy_.add(cat("latency of ", cluster_.levels[which].name), seconds);
    return seconds;
}

double StageTimes::copies(double bytes) {
    if (cluster_.copies_gbytes_per_s == 0) return 0;
    const double seconds = bytes / (cluster_.copies_gbytes_per_s * 1e9);
    busy_.add("copies", seconds);
    return seconds;
}

double StageTimes::digests(double bytes) {
    if (cluster_.digests_gbytes_per_s == 0) return 0;
    const double seconds = bytes / (cluster_.digests_gbytes_per_s * 1e9);
    busy_.add("digests", seconds);
    return seconds;
}

/// A header first, and when all have theirs the bytes.
double StageTimes::transport(const StageLoads& stage, const std::vector<double>& on, double bytes,
                             double moved) {
    double slowest = 0;
    for (std::size_t level = 0; level < on.size(); ++level)
        slowest = std::max(slowest, link(cluster_.levels[level].name, on[level] * bytes));
    return slowest + late(stage.level, 2) + digests(moved * bytes);
}

double StageTimes::sums(const StageLoads& stage, double bytes) {
    const double rate = cluster_.levels[stage.level].gbytes_per_s * 1e9;
    const std::string& name = cluster_.levels[stage.level].name;
    using Way = ClusterLevel::Way;
    switch (stage.way) {
        case Way::pinned:
            return link(name, (stage.sums_out + stage.sums_in) * bytes / rate) + wakes(2) +
                   late(stage.level, 1);
        case Way::peer:
            return link(name, stage.sums_in * bytes / rate) + wakes(1) + late(stage.level, 1);
        case Way::transport:
            break;
    }
    const double waking = cluster_.copies_gbytes_per_s > 0 ? wakes(1) : 0;
    return copies((stage.sums_out + stage.sums_in) * bytes) + waking +
           transport(stage, stage.sums_on, bytes, stage.sums_out + stage.sums_in);
}

double StageTimes::additions(const StageLoads& stage, double bytes) {
    const double seconds = memory_ > 0 ? 3 * stage.additions * bytes / memory_ : 0;
    busy_.add("additions", seconds);
    return seconds;
}

double StageTimes::means(const StageLoads& stage, double bytes, bool is_last) {
    const double rate = cluster_.levels[stage.level].gbytes_per_s * 1e9;
    const std::string& name = cluster_.levels[stage.level].name;
    using Way = ClusterLevel::Way;
    // Means that a transport has brought are in the host's memory.
    switch (stage.way) {
        case Way::pinned:
            return link(name, (is_last ? stage.kept + stage.means_in : stage.held) * bytes / rate) +
                   wakes(is_last ? 2 : 1) + late(stage.level, is_last ? 1 : 0);
        case Way::peer:
            return link(name, stage.means_in * bytes / rate) + wakes(is_last ? 2 : 1) +
                   late(stage.level, 1);
        case Way::transport:
            break;
    }
    double seconds = transport(stage, stage.means_on, bytes, stage.means_out + stage.means_in);
    if (is_last && cluster_.copies_gbytes_per_s > 0)
        seconds += copies(stage.kept * bytes) + wakes(1);
    // The first stage is the last of the means: the device then gets them all.
    if (stage.held == 1) seconds += copies(bytes);
    return seconds;
}

}  // namespace dlprim
