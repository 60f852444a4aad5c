// SPDX-License-Identifier: MIT
// The passes in their order.
#include "graph/passes/pipeline.hpp"

#include "graph/operator.hpp"

#include <algorithm>
#include <cmath>

namespace dlprim {

namespace {

/// Whether a composite is not expanded before differentiation. Nodes that others were expanded to
/// have not met the engines that are forced on their type.
bool stays_whole(const DeriveOptions& options, const Graph& graph, const Node& node) {
    if (!options.gradients) return true;
    if (!options.whole_pays) return false;
    const auto forced =
        std::find_if(options.engines.begin(), options.engines.end(),
                     [&](const auto& pair) { return pair.first == node.op->type(); });
    if (forced == options.engines.end() || !node.engine.empty())
        return options.whole_pays(graph, node);
    Node by_type = node;
    by_type.engine = forced->second;
    by_type.engine_by_type = true;
    return options.whole_pays(graph, by_type);
}

}  // namespace

void derive(Graph& graph, const DeriveOptions& options) {
    force_engines(graph, options.engines);
    expand_composites(
        graph, [&](const Graph& g, const Node& node) { return stays_whole(options, g, node); });
    ValueId loss_scale = no_value;
    if (options.gradients) {
        DifferentiateOptions how = *options.gradients;
        if (options.solver.add_loss_scale) loss_scale = options.solver.add_loss_scale(graph);
        how.loss_scale = loss_scale;
        differentiate(graph, how);
    }
    if (options.solver.add_update) options.solver.add_update(graph, loss_scale);
}

void fit_to_device(Graph& graph, const FitOptions& options) {
    force_engines(graph, options.engines);
    expand_composites(graph, options.whole_pays);  // those that gradients consist of
    if (options.fuse) fold_batch_norms(graph);
    if (options.fuse && options.device.host) mark_small_integers(graph);  // no other has engines
    if (options.fuse && options.joined_seconds)
        join_norms(graph, options.device, options.joined_seconds);
    if (options.fuse) fuse_epilogues(graph, options.fused_node_pays);
    if (options.fuse) join_views(graph);
    lower(graph);
    force_engines(graph, options.engines);  // on nodes that passes have added
    if (options.fuse && options.least_seconds) absorb_casts(graph, options.least_seconds);
    if (options.fuse) {
        merge_pointwise(graph);
        while (recompute_pointwise(graph, options.device)) merge_pointwise(graph);
        merge_casts(graph);
    }
    if (options.least_seconds)
        lower_precision(graph, options.least_narrow, options.narrow_cost, options.least_seconds);
    if (options.fuse && options.joined_seconds)
        join_rows(graph, options.device, [&](const Graph& g, const Node& node) {
            return std::isfinite(options.joined_seconds(g, node));
        });
}

}  // namespace dlprim
