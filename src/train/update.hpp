// SPDX-License-Identifier: MIT
// add_update: the solver as nodes of the graph. One launch updates the whole parameter block.
#pragma once

#include "graph/passes/pipeline.hpp"

#include <dlprim/solver_options.hpp>

#include <cstdint>

namespace dlprim {

/// What the update of a part of a larger network cannot find in its own graph.
struct WholeNet {
    /// Whether the update depends on gradients of other parts. What it needs of all gradients comes
    /// as scalars: "@squares", the sum of their squares, and "@overflow", which is above 0 where
    /// one of them is not finite.
    bool has_more = false;
    bool has_fp16 = false;  ///< whether an operator of any part computes in fp16
};

/// Adds the state by which a graph's loss must be multiplied (DifferentiateOptions::loss_scale).
/// The solver writes its first value, options.loss_scale. Returns no_value if no operator computes
/// in fp16 or the options turn loss scaling off.
ValueId add_loss_scale(Graph& graph, const SolverOptions& options, const WholeNet& whole = {});
constexpr const char* loss_scale_name = "@loss_scale";

/// With options.guard_loss: the state that is 0 until a batch's loss is not finite, and 1 from that
/// batch on.
constexpr const char* loss_guard_name = "@loss_guard";

/// With options.average: the state that holds the average of "@params", with the same offsets. Its
/// share of the new parameters is the scalar "@average_share".
constexpr const char* average_name = "@average";

/// Elements [begin, end) of the block of parameters.
struct StateSlice {
    std::int64_t begin = 0, end = 0;
    std::int64_t size() const { return end - begin; }
};
/// What a part of options.state_parts updates. Throws Error(invalid_argument) where there are more
/// parts than pieces of 64 elements.
StateSlice state_slice(std::int64_t block_elements, int part, int parts);

/// Adds nodes and assignments to a differentiated graph that update "@params" by "@gradients". The
/// nodes belong to the part update, and with options.accumulate > 1 also to the part accumulate.
/// They read the scalars "@lr", "@correction1" (1 - beta1^t) and "@correction2" (1 - beta2^t).
///
/// With a loss scale, gradients are divided by it. If one of them is not finite, parameters and
/// states keep their values and the scale is halved. t then counts the updates that were made, in a
/// state of its own (Micikevicius et al., "Mixed precision training", 2018).
///
/// With several options.state_parts, only options.state_part of "@params" is updated, by the same
/// part of "@gradients"; norms and checks are those of all gradients.
///
/// With options.guard_loss, nothing changes after the first loss that is not finite, not even the
/// loss scale or accumulated gradients.
///
/// Squares of gradients are added in pieces of Graph::block_grain elements (squares_of_pieces), and
/// these sums by another reduction (sum_of_pieces). The pieces of a network are those of its parts,
/// so that a network on several devices has the same norm.
void add_update(Graph& graph, const SolverOptions& options, ValueId loss_scale = no_value,
                const WholeNet& whole = {});

/// Programs on a block of gradients: the first one on its pieces, one a row.
inline constexpr const char* squares_of_pieces = "y0 = sum[1](x0 * x0)";
inline constexpr const char* sum_of_pieces = "y0 = sum[](x0)";
inline constexpr const char* find_overflow = "y0 = max[](select(isnan(x0) || isinf(x0), 1, 0))";

/// Both as passes of the pipeline; the loss scale only where `scales_losses`.
SolverPasses solver_passes(const SolverOptions& options, bool scales_losses,
                           const WholeNet& whole = {});

}  // namespace dlprim
