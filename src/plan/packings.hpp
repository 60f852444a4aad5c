// SPDX-License-Identifier: MIT
// Packings of weights in a training step: many small ones in one launch.
//
// Weights that a solver changes are packed again in every step. On a GPU each packing costs a
// launch, which takes longer than the packing itself where weights are small. Since parameters
// change only at the end of a step, all packings of one part can run together at its start:
// first the schedule moves them there (gather_packings), and once their launches are made, those
// that share a kernel become one launch (join_packings). docs/engines/packings.md has a picture.
#pragma once

#include "plan/plan.hpp"
#include "plan/schedule.hpp"
#include "runtime/program_builds.hpp"

#include <cstdint>
#include <vector>

namespace dlprim {

/// The number of bytes, read and written, below which a packing is small: the device moves them in
/// the time of a launch. 0 where packings stay where they are: on CPUs, where a packing right
/// before its reader leaves the weights in the cache, and if joined packings failed on the context.
std::uint64_t small_packing_bytes(ContextImpl& context);

/// Moves packings of parameters that move at most `most_bytes` to the start of their part.
/// Their results live from there on, so memory must be planned afterwards. Returns false if no part
/// has two or more of them. The schedule is unchanged then.
bool gather_packings(const Graph& graph, Schedule& schedule, std::uint64_t most_bytes);

/// A step and the programs that its launch has requested.
struct BuiltStep {
    Step step;
    PendingPrograms programs;
};

/// Makes one step of those packings in a row that are calls of the same kernel and whose operands
/// lie in the same buffers.
void join_packings(ContextImpl& context, std::vector<BuiltStep>& steps);

}  // namespace dlprim
