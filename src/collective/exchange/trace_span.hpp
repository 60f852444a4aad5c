// SPDX-License-Identifier: MIT
// TraceSpan: what a device or a thread did in a stretch of time of a training step, or is predicted
// to do. formats/trace_file.hpp makes a file of many.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace dlprim {

/// What a span is for: its category in a trace.
enum class TraceKind : std::uint8_t { compute, move, wait };

/// Whose time it is. The spans of a rank's row do not overlap.
enum class TraceRow : std::uint8_t {
    device,    ///< the queue on which the device computes
    exchange,  ///< the thread and the queue that move and add the rank's sums
    host,      ///< the thread that enqueues the rank's steps
};

struct TraceSpan {
    std::size_t rank = 0;
    TraceRow row = TraceRow::device;
    TraceKind kind = TraceKind::compute;
    std::string name;
    std::uint64_t begin_ns = 0,
                  end_ns = 0;  ///< of std::chrono::steady_clock, or since a step began
    std::int64_t step = 0;     ///< the update that it belongs to, from 1
    std::int64_t part = -1;    ///< the group of tensors of an exchange; -1: none
};

}  // namespace dlprim
