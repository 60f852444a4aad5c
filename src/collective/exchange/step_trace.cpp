// SPDX-License-Identifier: MIT
// StepTrace and TracePhases.
#include "collective/exchange/step_trace.hpp"

#include "runtime/access.hpp"
#include "runtime/context_impl.hpp"
#include "runtime/event_impl.hpp"

#include <dlprim/error.hpp>

#include <algorithm>
#include <chrono>
#include <exception>
#include <map>
#include <utility>

namespace dlprim {

namespace {

std::uint64_t now_ns() {
    return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                          std::chrono::steady_clock::now().time_since_epoch())
                                          .count());
}

}  // namespace

void StepTrace::begin(std::int64_t step) {
    step_.store(step);
    on_.store(true);
}

void StepTrace::mark(std::size_t rank, const Context& context, TraceKind kind, const char* name) {
    if (!is_on()) return;
    std::shared_ptr<EventImpl> event = Access::impl(context).record({.timed = true});
    const std::lock_guard lock(mutex_);
    marks_.push_back({rank, kind, name, step(), std::move(event)});
}

void StepTrace::interrupt() {
    const std::lock_guard lock(mutex_);
    marks_.emplace_back();
}

void StepTrace::add(TraceSpan span) {
    span.step = step();
    span.rank += first_rank_;
    const std::lock_guard lock(mutex_);
    spans_.push_back(std::move(span));
}

std::vector<TraceSpan> StepTrace::take(bool wait) {
    std::vector<Mark> marks;
    std::vector<TraceSpan> spans;
    {
        const std::lock_guard lock(mutex_);
        marks = std::exchange(marks_, {});
        spans = std::exchange(spans_, {});
    }
    std::map<std::size_t, std::uint64_t> last;  // by rank: the time of its last mark
    for (const Mark& mark : marks) {
        if (!mark.event) {
            last.clear();
            continue;
        }
        std::uint64_t time = 0;
        try {
            if (!wait && !mark.event->done()) continue;
            time = mark.event->time_ns();
        } catch (const Error&) {
            continue;  // of a device that has failed, which others report
        }
        const auto before = last.find(mark.rank);
        // Drivers tell of an event a little late, and maybe of two in the wrong order.
        if (before != last.end()) time = std::max(time, before->second);
        if (before != last.end() && time > before->second)
            spans.push_back({mark.rank + first_rank_, TraceRow::device, mark.kind, mark.name,
                             before->second, time, mark.step});
        last[mark.rank] = time;
    }
    return spans;
}

void TracePhases::begin(TraceKind kind, const char* name) {
    const std::uint64_t now = now_ns();
    if (span_.begin_ns != 0) {
        span_.end_ns = now;
        trace_->add(span_);
    }
    span_.kind = kind;
    span_.name = name;
    span_.begin_ns = now;
}

void TracePhases::finish() noexcept {
    if (trace_ == nullptr || span_.begin_ns == 0) return;
    try {
        span_.end_ns = now_ns();
        trace_->add(std::move(span_));
    } catch (const std::exception&) {
        // A span less, where there is no memory for it.
    }
}

}  // namespace dlprim
