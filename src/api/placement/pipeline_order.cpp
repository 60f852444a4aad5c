// SPDX-License-Identifier: MIT
// pipeline_order: parts have an order each, and a device with several parts takes that task next
// which can begin first.
#include "api/placement/pipeline_order.hpp"

#include <algorithm>
#include <limits>
#include <optional>

namespace dlprim {

namespace {

/// Runs the pipeline with assumed times, and records who does what.
class Simulation {
  public:
    Simulation(const std::vector<std::size_t>& device_of, int shards)
        : device_of_(device_of),
          shards_(shards),
          parts_(device_of.size()),
          devices_(*std::max_element(device_of.begin(), device_of.end()) + 1),
          orders_(devices_.size()) {
        for (Part& part : parts_) {
            part.forward_ends.assign(static_cast<std::size_t>(shards), never);
            part.backward_ends = part.forward_ends;
        }
    }

    std::vector<std::vector<PipelineTask>> run() {
        for (std::size_t left = 2 * parts_.size() * static_cast<std::size_t>(shards_); left > 0;
             --left)
            take(next());
        return std::move(orders_);
    }

  private:
    static constexpr int never = std::numeric_limits<int>::max();
    /// What is assumed: a backward part takes as long as two forward parts.
    static constexpr int forward_time = 1, backward_time = 2;

    struct Part {
        int forwards = 0, backwards = 0;  ///< tasks that were taken
        std::vector<int> forward_ends, backward_ends;
    };

    /// The next task of a part, which other parts and devices do not change.
    std::optional<PipelineTask> next_of(int index) const {
        const Part& part = parts_[at(index)];
        const int most = shards_in_flight(index, static_cast<int>(parts_.size()), shards_);
        if (part.forwards < shards_ && part.forwards - part.backwards < most)
            return PipelineTask{index, part.forwards, false};
        if (part.backwards < shards_) return PipelineTask{index, part.backwards, true};
        return std::nullopt;
    }

    /// When the task can begin; `never` if what it needs was not taken yet.
    int begin_of(const PipelineTask& task) const {
        const bool is_first = task.backward ? at(task.part) + 1 == parts_.size() : task.part == 0;
        int ready = 0;
        if (!is_first) {
            const Part& before = parts_[at(task.backward ? task.part + 1 : task.part - 1)];
            ready = (task.backward ? before.backward_ends : before.forward_ends)[at(task.shard)];
        }
        return ready == never ? never : std::max(ready, devices_[device_of_[at(task.part)]]);
    }

    /// The task that can begin first; of several the one nearest to the end of its shard.
    PipelineTask next() const {
        PipelineTask best;
        int begin = never;
        for (int index = 0; index < static_cast<int>(parts_.size()); ++index) {
            const std::optional<PipelineTask> task = next_of(index);
            if (!task) continue;
            const int own = begin_of(*task);
            const bool is_later = own == begin && (task->backward || !best.backward);
            if (own >= begin && !(is_later && own != never)) continue;
            best = *task;
            begin = own;
        }
        return best;
    }

    void take(const PipelineTask& task) {
        Part& part = parts_[at(task.part)];
        const std::size_t device = device_of_[at(task.part)];
        const int end = begin_of(task) + (task.backward ? backward_time : forward_time);
        (task.backward ? part.backward_ends : part.forward_ends)[at(task.shard)] = end;
        ++(task.backward ? part.backwards : part.forwards);
        devices_[device] = end;
        orders_[device].push_back(task);
    }

    static std::size_t at(int index) { return static_cast<std::size_t>(index); }

    const std::vector<std::size_t>& device_of_;
    const int shards_;
    std::vector<Part> parts_;
    std::vector<int> devices_;  ///< when each is free
    std::vector<std::vector<PipelineTask>> orders_;
};

}  // namespace

int shards_in_flight(int part, int parts, int shards) {
    return std::min(shards, 2 * (parts - 1 - part) + 1);
}

std::vector<std::vector<PipelineTask>> pipeline_order(const std::vector<std::size_t>& device_of,
                                                      int shards) {
    return Simulation(device_of, shards).run();
}

}  // namespace dlprim
