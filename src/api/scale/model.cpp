// SPDX-License-Identifier: MIT
// model_step().
#include "api/scale/model.hpp"

#include "api/rank_shards.hpp"
#include "api/scale/stage_loads.hpp"
#include "api/scale/stage_times.hpp"
#include "base/shard_tree.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <string>

namespace dlprim {

namespace {

class StepModel {
  public:
    StepModel(const StepWork& work, const Cluster& cluster, const StepOf& step,
              std::vector<TraceSpan>* trace)
        : work_(work),
          shards_(step.shards),
          parts_(shards_of_ranks(static_cast<std::size_t>(step.devices), step.shards, {})),
          trace_(trace),
          times_(cluster, work.memory, busy_) {
        for (const ShardRange& part : parts_) most_ = std::max(most_, part.count);
        if (parts_.size() > 1) stages_ = loads_of_stages(cluster, step.shards, parts_, step.direct);
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

    /// When a device has the part, and has added it to its own sums.
    double ready_at(std::size_t part) const {
        double bytes = 0;
        for (std::size_t i = 0; i <= part; ++i) bytes += work_.parts[i].bytes;
        return work_.parts[part].ready + memory_seconds(3 * bytes);
    }

    void exchange() {
        const double last = last_backward(most_);
        const bool is_reached = stages_.size() == 1 && stages_[0].way == ClusterLevel::Way::peer;
        double free = 0;
        for (std::size_t part = 0; part < work_.parts.size();) {
            const double ready = ready_at(part);
            const double begin = std::max(free, last + ready) + times_.wakes(1);
            double bytes = work_.parts[part].bytes;
            std::size_t end = part + 1;
            // Ranges of the gradients that are complete go as one.
            for (; is_reached && part > 0 && end < work_.parts.size() &&
                   last + ready_at(end) <= begin;
                 ++end)
                bytes += work_.parts[end].bytes;
            const std::vector<Phase> phases = phases_of(bytes);
            trace_exchange(part, ready, free, begin, phases);
            free = begin;
            for (const Phase& phase : phases) free += phase.seconds;
            exchange_seconds_ += free - begin;
            part = end;
        }
        // The thread that moves sums learns that all means are there, and then the one that begins
        // the update.
        exchanged_ = free + times_.wakes(2);
    }

    struct Phase {
        const char* name;
        double seconds;
    };
    std::vector<Phase> phases_of(double bytes) {
        std::vector<Phase> phases;
        for (const StageLoads& stage : stages_) {
            phases.push_back({"send sums", times_.sums(stage, bytes)});
            phases.push_back({"add slice", times_.additions(stage, bytes)});
        }
        for (std::size_t i = stages_.size(); i-- > 0;)
            phases.push_back(
                {"receive means", times_.means(stages_[i], bytes, i + 1 == stages_.size())});
        return phases;
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

    void trace_exchange(std::size_t index, double ready, double free, double begin,
                        const std::vector<Phase>& phases) const {
        const auto part = static_cast<std::int64_t>(index);
        constexpr TraceRow row = TraceRow::exchange;
        for (std::size_t rank = 0; rank < traced(); ++rank) {
            double now = std::max(free, last_backward(parts_[rank].count) + ready);
            span(rank, row, TraceKind::wait, "wait for the sums of others", now, begin, part);
            now = begin;
            for (const Phase& phase : phases) {
                span(rank, row, TraceKind::move, phase.name, now, now + phase.seconds, part);
                now += phase.seconds;
            }
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
    const int shards_;
    const std::vector<ShardRange> parts_;  ///< by device
    std::vector<TraceSpan>* const trace_;
    int most_ = 0;          ///< shards of the device with the most
    double exchanged_ = 0;  ///< when the last means are there
    double exchange_seconds_ = 0;
    std::vector<StageLoads> stages_;
    Busy busy_;
    StageTimes times_;
};

}  // namespace

ScalePoint model_step(const StepWork& work, const Cluster& cluster, const StepOf& step,
                      std::vector<TraceSpan>* trace) {
    return StepModel(work, cluster, step, trace).run();
}

}  // namespace dlprim
