// SPDX-License-Identifier: MIT
// The model of a step on several devices: each computes its shards, and while the backward part of
// its last one runs, parts of the sums go through the exchange, one after the other. It follows the
// stages of LevelPlan (collective/processes/level_plan.hpp), one for each level:
//
//   stage 0, 1, ...   every device has its share of all sums of its group, and adds them
//   ..., 1, 0         every device gets the means of the others
#pragma once

#include "api/scale/step_work.hpp"
#include "collective/exchange/trace_span.hpp"

#include <dlprim/scale.hpp>

#include <cstdint>
#include <vector>

namespace dlprim {

struct StepOf {
    int shards = 1;  ///< of the batch
    int devices = 1;
    bool direct = false;  ///< ScaleOptions::direct
};
/// With `trace`, adds the spans of the first devices to it.
ScalePoint model_step(const StepWork& work, const Cluster& cluster, const StepOf& step,
                      std::vector<TraceSpan>* trace = nullptr);

/// Of how many devices there are spans.
constexpr int traced_devices = 16;
/// More devices than anyone has, and few enough to be counted one by one.
constexpr std::int64_t most_devices = 65536;

}  // namespace dlprim
