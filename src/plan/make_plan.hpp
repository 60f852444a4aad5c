// SPDX-License-Identifier: MIT
// make_plan: converts a graph to a plan for one device. Its stages are in other files: passes
// (graph/passes/pipeline.hpp), the choice of engines (choose.hpp), the order of launches
// (schedule.hpp), memory (memory.hpp), launches (steps.hpp) and their programs (compile_stage.hpp).
#pragma once

#include "graph/graph.hpp"
#include "plan/plan.hpp"
#include "plan/plan_options.hpp"

#include <dlprim/context.hpp>

#include <memory>

namespace dlprim {

/// If the kernels of an engine do not build, the engine is disabled (engine/disabled.hpp), the next
/// one is used, and the notes say so. Throws Error if a forced engine does not apply to its node
/// (with its reason) or if no engine does. Throws out_of_memory, which says how much is needed and
/// for what, how much there is, and the largest batch that fits.
std::unique_ptr<Plan> make_plan(const Context& context, const Graph& graph,
                                const PlanOptions& options = {});

}  // namespace dlprim
