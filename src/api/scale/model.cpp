// SPDX-License-Identifier: MIT
// model_step().
#include "api/scale/model.hpp"

#include "api/rank_shards.hpp"
#include "base/shard_tree.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <string>

namespace dlprim {

namespace {

/// An exchange of all with all: seconds on the links, by level, for each byte of a part.
using Loads = std::vector<double>;

/// `sums` are how many sums of a part each device sends, of every slice to its owner. A member of a
/// level sends what its devices have for all others, and receives what these have for its own.
Loads loads_of(const Cluster& cluster, const std::vector<double>& sums) {
    const std::size_t all = sums.size();
    const double total = std::accumulate(sums.begin(), sums.end(), 0.0);
    Loads loads;
    std::size_t size = 1;  // devices of a member
    for (const ClusterLevel& level : cluster.levels) {
        double most = 0;
        for (std::size_t first = 0; first < all && size < all; first += size) {
            const std::size_t end = std::min(first + size, all);
            const double own =
                std::accumulate(sums.begin() + static_cast<std::ptrdiff_t>(first),
                                sums.begin() + static_cast<std::ptrdiff_t>(end), 0.0);
            const auto devices = static_cast<double>(end - first);
            const double out = own * (static_cast<double>(all) - devices);
            const double in = (total - own) * devices;
            most = std::max({most, out, in});
        }
        loads.push_back(most / static_cast<double>(all) / (level.gbytes_per_s * 1e9));
        size *= static_cast<std::size_t>(level.count);
    }
    return loads;
}

/// What is busy, and for how long.
class Busy {
  public:
    void add(const std::string& what, double seconds) {
        for (auto& [name, sum] : all_)
            if (name == what) return void(sum += seconds);
        all_.emplace_back(what, seconds);
    }
    std::string most() const {
        return std::max_element(all_.begin(), all_.end(),
                                [](const auto& a, const auto& b) { return a.second < b.second; })
            ->first;
    }

  private:
    std::vector<std::pair<std::string, double>> all_;
};

class StepModel {
  public:
    StepModel(const StepWork& work, const Cluster& cluster, int shards, int devices,
              std::vector<TraceSpan>* trace)
        : work_(work),
          cluster_(cluster),
          shards_(shards),
          parts_(shards_of_ranks(static_cast<std::size_t>(devices), shards, {})),
          trace_(trace) {
        for (const ShardRange& part : parts_) {
            ShardTree tree(shards);
            for (int shard = part.first; shard < part.end(); ++shard) tree.take({shard, 1});
            sums_.push_back(static_cast<double>(tree.pending().size()));
            most_ = std::max(most_, part.count);
        }
    }

    ScalePoint run() {
        const double backward_end = compute_seconds(most_);
        busy_.add("compute", backward_end + work_.update);
        if (parts_.size() > 1) exchange();
        const double update_begin = std::max(backward_end, exchanged_);
        trace_devices(update_begin);
        ScalePoint point;
        point.devices = static_cast<int>(parts_.size());
        point.step_ms = (update_begin + work_.update) * 1e3;
        point.compute_ms = (backward_end + work_.update) * 1e3;
        point.exchange_ms = exchange_seconds_ * 1e3;
        point.wait_ms = (update_begin - backward_end) * 1e3;
        point.bound = busy_.most();
        return point;
    }

  private:
    double memory_seconds(double bytes) const {
        return work_.memory > 0 ? bytes / work_.memory : 0;
    }
    /// A shard's gradients are copied, or added to the sum before them.
    double add_seconds() const { return shards_ > 1 ? memory_seconds(3 * work_.bytes()) : 0; }
    /// Until the backward part of the last of so many shards ends.
    double compute_seconds(int count) const {
        return count * (work_.forward + work_.backward + add_seconds());
    }
    double last_backward(int count) const {
        return compute_seconds(count) - work_.backward - add_seconds();
    }

    /// An exchange of all with all from `begin` on. Returns when it ends.
    double all_to_all(const Loads& loads, double bytes, double begin) {
        double slowest = 0, latency = 0;
        std::size_t size = 1;
        std::string late;
        for (std::size_t i = 0; i < loads.size(); ++i) {
            const ClusterLevel& level = cluster_.levels[i];
            slowest = std::max(slowest, loads[i] * bytes);
            busy_.add(cat("link of ", level.name), loads[i] * bytes);
            // A header first, and when all have theirs the bytes.
            if (size < parts_.size() && 2e-6 * level.latency_us >= latency) {
                latency = 2e-6 * level.latency_us;
                late = level.name;
            }
            size *= static_cast<std::size_t>(level.count);
        }
        if (latency > 0) busy_.add(cat("latency of ", late), latency);
        return begin + slowest + latency;
    }

    void exchange() {
        const Loads sums = loads_of(cluster_, sums_);
        const Loads means = loads_of(cluster_, std::vector<double>(parts_.size(), 1.0));
        const double slices = static_cast<double>(parts_.size());
        const double additions = std::accumulate(sums_.begin(), sums_.end(), -1.0);
        double free = 0, bytes = 0;
        for (std::size_t i = 0; i < work_.parts.size(); ++i) {
            const StepWork::Part& part = work_.parts[i];
            bytes += part.bytes;  // which the device has added to its own sums by then
            const double ready = part.ready + memory_seconds(3 * bytes);
            const double begin = std::max(free, last_backward(most_) + ready);
            const double sent = all_to_all(sums, part.bytes, begin);
            const double adds = memory_seconds(3 * additions * part.bytes / slices);
            busy_.add("additions", adds);
            const double added = sent + adds;
            const double end = all_to_all(means, part.bytes, added);
            trace_exchange(i, {ready, free, begin, sent, added, end});
            exchange_seconds_ += end - begin;
            free = end;
        }
        exchanged_ = free;
    }

    void span(std::size_t rank, TraceRow row, TraceKind kind, const char* name, double begin,
              double end, std::int64_t part = -1) const {
        const auto ns = [](double seconds) {
            return static_cast<std::uint64_t>(std::llround(seconds * 1e9));
        };
        if (ns(end) > ns(begin))
            trace_->push_back({rank, row, kind, name, ns(begin), ns(end), 1, part});
    }

    std::size_t traced() const {
        return trace_ == nullptr ? 0 : std::min<std::size_t>(parts_.size(), traced_devices);
    }

    struct Times {
        double ready, free, begin, sent, added, end;
    };
    void trace_exchange(std::size_t index, const Times& at) const {
        const auto part = static_cast<std::int64_t>(index);
        for (std::size_t rank = 0; rank < traced(); ++rank) {
            const double ready = last_backward(parts_[rank].count) + at.ready;
            constexpr TraceRow row = TraceRow::exchange;
            span(rank, row, TraceKind::wait, "wait for the sums of others",
                 std::max(at.free, ready), at.begin, part);
            span(rank, row, TraceKind::move, "send sums", at.begin, at.sent, part);
            span(rank, row, TraceKind::move, "add slice", at.sent, at.added, part);
            span(rank, row, TraceKind::move, "receive means", at.added, at.end, part);
        }
    }

    void trace_devices(double update_begin) const {
        for (std::size_t rank = 0; rank < traced(); ++rank) {
            constexpr TraceRow row = TraceRow::device;
            double now = 0;
            const auto next = [&](TraceKind kind, const char* name, double seconds) {
                span(rank, row, kind, name, now, now + seconds);
                now += seconds;
            };
            for (int shard = 0; shard < parts_[rank].count; ++shard) {
                next(TraceKind::compute, "forward", work_.forward);
                next(TraceKind::compute, "backward", work_.backward);
                next(TraceKind::compute, "add sums", add_seconds());
            }
            next(TraceKind::wait, "wait for means", update_begin - now);
            next(TraceKind::compute, "update", work_.update);
        }
    }

    const StepWork& work_;
    const Cluster& cluster_;
    const int shards_;
    const std::vector<ShardRange> parts_;  ///< by device
    std::vector<TraceSpan>* const trace_;
    std::vector<double> sums_;  ///< by device: how many sums it sends
    int most_ = 0;              ///< shards of the device with the most
    double exchanged_ = 0;      ///< when the last means are there
    double exchange_seconds_ = 0;
    Busy busy_;
};

}  // namespace

ScalePoint model_step(const StepWork& work, const Cluster& cluster, int shards, int devices,
                      std::vector<TraceSpan>* trace) {
    return StepModel(work, cluster, shards, devices, trace).run();
}

}  // namespace dlprim
