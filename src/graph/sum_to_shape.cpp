// SPDX-License-Identifier: MIT
// sum_to_shape: a Pointwise reduction and a view.
#include "graph/sum_to_shape.hpp"

#include "base/text.hpp"

namespace dlprim {

ValueId sum_to_shape(Graph& graph, const std::string& name, ValueId gradient, const Shape& target) {
    const Shape& from = graph.shape(gradient);
    if (from == target) return gradient;
    std::string axes;
    const int extra = from.rank() - target.rank();
    for (int i = 0; i < from.rank(); ++i) {
        if (i >= extra && from[i] == target[i - extra]) continue;
        axes += cat(axes.empty() ? "" : ",", i);
    }
    if (!axes.empty())
        gradient = graph.pointwise1(name, cat("y0 = sum[", axes, "](x0)"), {gradient});
    return graph.reshape(name + "/shape", gradient, target);
}

}  // namespace dlprim
