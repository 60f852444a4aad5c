// SPDX-License-Identifier: MIT
// StepTrace: records what the ranks of this process do in some training steps. Threads measure
// their own work; what a device does is found between marks on its queue, which events tell the
// time of. So a traced step waits for nothing that another one does not wait for.
//
// Threads: any thread may call any member. Who records gets a pointer, which is null in a run
// without a trace; then, and outside of the traced steps, recording costs a test.
#pragma once

#include "collective/exchange/trace_span.hpp"

#include <dlprim/context.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace dlprim {

class EventImpl;

class StepTrace {
  public:
    /// `first_rank` is the number of the process's rank 0 among those of all processes. All other
    /// members count the ranks of this process.
    explicit StepTrace(std::size_t first_rank) : first_rank_(first_rank) {}

    /// Records from now on, as a part of this step. Called before each traced step.
    void begin(std::int64_t step);
    void end() { on_.store(false); }
    bool is_on() const noexcept { return on_.load(std::memory_order_relaxed); }
    std::int64_t step() const noexcept { return step_.load(std::memory_order_relaxed); }

    /// Says what the device has been given since the rank's last mark. The span lasts from when it
    /// reaches that mark to when it reaches this one. Called by the rank's own thread.
    void mark(std::size_t rank, const Context& context, TraceKind kind, const char* name);
    /// Forgets the last marks: what devices do until the next ones is no part of a step.
    void interrupt();
    /// Adds what a thread has measured.
    void add(TraceSpan span);

    /// All spans, once. With `wait` for devices that have not reached their last marks; otherwise,
    /// as after a failure, without what lies behind these.
    std::vector<TraceSpan> take(bool wait);

  private:
    struct Mark {
        std::size_t rank = 0;
        TraceKind kind = TraceKind::compute;
        std::string name;
        std::int64_t step = 0;
        std::shared_ptr<EventImpl> event;  ///< none: an interruption of all ranks
    };
    const std::size_t first_rank_;
    std::atomic<bool> on_{false};
    std::atomic<std::int64_t> step_{0};
    std::mutex mutex_;
    std::vector<TraceSpan> spans_;
    std::vector<Mark> marks_;
};

/// Spans of a thread that follow each other. The last one ends with the object.
class TracePhases {
  public:
    /// `trace` may be null.
    TracePhases(StepTrace* trace, std::size_t rank, TraceRow row, std::int64_t part = -1)
        : trace_(trace != nullptr && trace->is_on() ? trace : nullptr) {
        if (trace_ == nullptr) return;
        span_.rank = rank;
        span_.row = row;
        span_.part = part;
    }
    ~TracePhases() { finish(); }
    TracePhases(const TracePhases&) = delete;
    TracePhases& operator=(const TracePhases&) = delete;

    /// Ends a span and begins another one.
    void next(TraceKind kind, const char* name) {
        if (trace_ != nullptr) begin(kind, name);
    }

  private:
    void begin(TraceKind kind, const char* name);
    void finish() noexcept;

    StepTrace* const trace_;
    TraceSpan span_;
};

}  // namespace dlprim
