// SPDX-License-Identifier: MIT
// make_plan: from a graph to a plan for one device. The stages have files of their own: the passes
// (graph/passes/pipeline.hpp), the choice of engines (choose.hpp), the order of launches
// (schedule.hpp), memory (memory.hpp), the launches (steps.hpp) and their programs
// (compile_stage.hpp).
#pragma once

#include "graph/graph.hpp"
#include "plan/plan.hpp"
#include "plan/plan_options.hpp"

#include <dlprim/context.hpp>

#include <memory>

namespace dlprim {

/// An engine whose kernels do not build is disabled (engine/disabled.hpp), and the next one takes
/// its place; the notes say so. Throws Error: an engine forced on a node that does not apply (with
/// its reason); no engine for a node; out_of_memory with what is needed, by whom, what is there and
/// the largest batch that fits.
std::unique_ptr<Plan> make_plan(const Context& context, Graph graph,
                                const PlanOptions& options = {});

}  // namespace dlprim
