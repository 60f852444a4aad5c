// SPDX-License-Identifier: MIT
// Tuning: measures engines, their layouts and their tuning parameters on the problems of a graph,
// and puts what it finds into the user's database (engine/database.hpp), where choose_engines looks
// first.
#pragma once

#include "graph/graph.hpp"
#include "plan/plan.hpp"

#include <vector>

namespace dlprim {

/// Measures every problem of the graph that the databases do not know and that more than one
/// candidate can solve, until `options.tune_seconds` have passed; each is stored as soon as it is
/// known. A candidate counts when its result agrees with that of the engine that the estimates
/// prefer. Waits for the device. A note says how many problems were measured, and how many the time
/// was too short for.
void tune_problems(ContextImpl& context, const Graph& graph, const std::vector<char>& constant,
                   const PlanOptions& options, std::vector<std::string>& notes);

}  // namespace dlprim
