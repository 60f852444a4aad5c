// SPDX-License-Identifier: MIT
// The text of a trace: spans of ranks in Chrome's trace event format, as chrome://tracing and
// https://ui.perfetto.dev open it. A rank is a process there and its rows are threads.
#pragma once

#include "collective/exchange/trace_span.hpp"

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace dlprim {

struct TraceRank {
    std::size_t rank = 0;
    std::string name;  ///< "rank 0: cpu"
};

/// JSON. Spans come out in the order of their begin; rows without spans are left out. `about` are
/// pairs that describe the run.
std::string trace_text(const std::vector<TraceRank>& ranks, std::vector<TraceSpan> spans,
                       const std::vector<std::pair<std::string, std::string>>& about);

}  // namespace dlprim
