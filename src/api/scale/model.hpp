// SPDX-License-Identifier: MIT
// The model of a step on several devices: each computes its shards, and while the backward part of
// its last one runs, parts of the sums go through the exchange (collective/exchange.hpp), one after
// the other:
//
//   every device   its sums of a slice  --> the slice's owner     all to all
//   the owner      adds them
//   every device   all means            <-- their owners          all to all
#pragma once

#include "api/scale/step_work.hpp"
#include "collective/trace_span.hpp"

#include <dlprim/scale.hpp>

#include <cstdint>
#include <vector>

namespace dlprim {

/// The step of a batch of so many shards. With `trace`, adds the spans of the first devices to it.
ScalePoint model_step(const StepWork& work, const Cluster& cluster, int shards, int devices,
                      std::vector<TraceSpan>* trace = nullptr);

/// Of how many devices there are spans.
constexpr int traced_devices = 16;
/// More devices than anyone has, and few enough to be counted one by one.
constexpr std::int64_t most_devices = 65536;

}  // namespace dlprim
