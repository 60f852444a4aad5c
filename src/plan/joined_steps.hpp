// SPDX-License-Identifier: MIT
// Steps that share a launch, on GPUs, where many small launches cost more than their work.
//
// Three kinds of steps that follow each other are joined if they are calls of one kernel:
//  - Packings of weights. Weights that a solver changes are packed again in every step. Since
//    parameters change only at the end of a step, all packings of one part can run together at its
//    start. The schedule moves them there first (gather_packings).
//  - Copies of parts of one value, such as the gradient of Concat.
//  - Short products of one value, such as those of one token for queries, keys and values.
// docs/engines/joined_launches.md has a picture.
#pragma once

#include "plan/launch_schedule.hpp"
#include "plan/plan.hpp"
#include "runtime/program_builds.hpp"

#include <cstdint>
#include <vector>

namespace dlprim {

/// Whether steps are joined: not on CPUs, where a packing right before its reader leaves the
/// weights in the cache, and not if a joined launch has failed on the context.
bool joins_steps(ContextImpl& context);

/// The number of bytes, read and written, up to which a packing is small: the device moves them in
/// the time of a launch.
std::uint64_t small_packing_bytes(const Traits& device);

/// Moves packings of parameters that move at most `most_bytes` to the start of their part.
/// Their results live from there on, so memory must be planned afterwards. Returns false if no part
/// has two or more of them. The schedule is unchanged then.
bool gather_packings(const Graph& graph, LaunchSchedule& schedule, std::uint64_t most_bytes);

/// A step and the programs that its launch has requested.
struct BuiltStep {
    Step step;
    PendingPrograms programs;
};

/// Joins steps wherever the order of the plan allows it.
void join_steps(ContextImpl& context, std::vector<BuiltStep>& steps,
                std::span<const External> externals);

}  // namespace dlprim
