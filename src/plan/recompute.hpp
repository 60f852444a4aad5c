// SPDX-License-Identifier: MIT
// Which forward nodes run again in backward, so that a plan takes less memory: those that the user
// has marked and, where a limit is given, those that make the plan fit at the least extra time.
#pragma once

#include "plan/choose.hpp"

#include <string>
#include <vector>

namespace dlprim {

/// Adds the nodes to the graph, with the choices of those that they repeat, and says in a note what
/// they cost. With PlanOptions::recompute_to_fit, nodes are chosen so that the plan fits the limit;
/// if none do, so that it needs the least memory that was found.
///
/// Each candidate of the search is planned, so that its peak is exact.
/// 1. Starting with the marked nodes, one node after the other is changed whose results are live at
///    the peak: the one that frees the most bytes for a second of its time runs again, if the peak
///    falls.
/// 2. A share of the nodes, those that free the most bytes for a second, is cut into segments that
///    free at most so many bytes, at whose ends results are kept (Chen et al., "Training Deep Nets
///    with Sublinear Memory Cost", 2016, algorithm 3). Both numbers are varied.
/// 3. Of those that fit, the one that takes the least time counts. If there is none, the one with
///    the lowest peak is changed as in step 1.
/// 4. Nodes are taken away again as long as it fits, the most expensive ones first.
void recompute(const Traits& device, Graph& graph, std::vector<char>& constant,
               std::vector<Choice>& choices, const PlanOptions& options,
               std::vector<std::string>& notes);

}  // namespace dlprim
