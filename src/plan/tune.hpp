// SPDX-License-Identifier: MIT
// Tuning: measures engines, their layouts and their tuning parameters on the problems of a graph,
// and puts what it finds into the user's database (engine/database.hpp), where choose_engines looks
// first.
#pragma once

#include "engine/engine.hpp"
#include "graph/graph.hpp"
#include "plan/plan.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace dlprim {

/// Measures every problem of the graph that the databases do not know and that more than one
/// candidate can solve, until `options.tune_seconds` have passed; each is stored as soon as all its
/// candidates were tried, and not before. A candidate counts when its results agree with those of
/// the reference engine, or, where that would take too long, of the engine that the estimates
/// prefer (plan/bench.hpp). Waits for the device. Notes say how many problems were measured, how
/// many the time was too short for, and which engines gave wrong results.
void tune_problems(ContextImpl& context, const Graph& graph, const std::vector<char>& constant,
                   const PlanOptions& options, std::vector<std::string>& notes);

}  // namespace dlprim
