// SPDX-License-Identifier: MIT
// Spans: where sequences that lie behind each other are, by row, made of their cumulative lengths.
//
// A span is four int32. That of a query: the positions [first, second) of its sequence, and at
// which position the query stands, less its own number. Behind the spans of all queries lie those
// of all positions: the queries [first, second) of its sequence, and the same difference.
#pragma once

#include "ops/attention/heads.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace dlprim::attention {

inline constexpr std::size_t span_bytes = 16;

/// The cumulative lengths of a problem.
struct SpanSizes {
    SpanSizes(const Problem& problem, const Heads& heads);
    std::int64_t sequences;
    std::int64_t keys_row;  ///< where the lengths of keys begin: 0 if they are those of queries
    DType dtype;
};

/// Bytes of a launch's workspace: of the spans of all queries and positions, or 0 without lengths.
std::uint64_t spans_bytes(const Heads& heads);

/// Adds the kernel that makes the spans in the workspace (kernels/attention/spans.cl); nothing
/// without lengths. It refuses what are no cumulative lengths, and spans stay within the positions.
void add_spans_call(KernelLaunch& launch, ContextImpl& context, const Problem& problem,
                    const Heads& heads);

/// The spans on the host. Throws Error(invalid_argument) for what are no cumulative lengths.
std::vector<std::int32_t> host_spans(const Heads& heads, const SpanSizes& of, bool lower_right,
                                     const std::vector<std::int64_t>& lengths);

}  // namespace dlprim::attention
