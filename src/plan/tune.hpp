// SPDX-License-Identifier: MIT
// Tuning: measures engines, their layouts and their tuning parameters on the problems of a graph.
// Results go into the user's database (engine/database.hpp), which choose_engines consults first.
#pragma once

#include "engine/engine.hpp"
#include "graph/graph.hpp"
#include "plan/plan_options.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace dlprim {

/// Measures every problem of the graph that is in no database and has more than one candidate,
/// until `options.tune_seconds` have passed. A problem is stored as soon as all of its candidates
/// have been tried, and not before. A candidate counts only if its results agree with those of the
/// reference engine. If that engine would take too long, they are compared with those of the engine
/// that estimates prefer (plan/bench.hpp). Waits for the device. Notes say how many problems were
/// measured, how many were left for lack of time, and which engines gave wrong results.
void tune_problems(ContextImpl& context, const Graph& graph, const std::vector<char>& constant,
                   const PlanOptions& options, std::vector<std::string>& notes);

}  // namespace dlprim
