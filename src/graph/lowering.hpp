// SPDX-License-Identifier: MIT
// Helpers for operators that become Pointwise nodes: axis lists, broadcasts, scalars.
#pragma once

#include "base/text.hpp"
#include "graph/graph.hpp"

#include <algorithm>
#include <string>
#include <vector>

namespace dlprim {

/// As many of the first `scalars` as `code` uses (p0, p1, ...).
inline Doubles scalars_of(const std::string& code, Doubles scalars) {
    while (!scalars.empty() && code.find(cat("p", scalars.size() - 1)) == std::string::npos)
        scalars.pop_back();
    return scalars;
}

/// "[0,2,3]", the axis list of a reduction in the pointwise language.
inline std::string axes_text(const Ints& axes) {
    std::string text = "[";
    for (std::size_t i = 0; i < axes.size(); ++i) text += cat(i ? "," : "", axes[i]);
    return text + "]";
}

/// `shape` with the listed dimensions (not negative) set to 1.
inline Shape keep_dims(const Shape& shape, const Ints& axes) {
    Ints dims = shape.to_vector();
    for (std::int64_t axis : axes) dims.at(static_cast<std::size_t>(axis)) = 1;
    return Shape(dims);
}

/// All dimensions except `kept`.
inline Ints axes_but(int rank, int kept) {
    Ints axes;
    for (int i = 0; i < rank; ++i)
        if (i != kept) axes.push_back(i);
    return axes;
}

/// [1, C, 1, ...] of the given rank, the shape in which a per-channel vector broadcasts over
/// dimension 1.
inline Shape channel_shape(std::int64_t channels, int rank) {
    Ints dims(static_cast<std::size_t>(rank), 1);
    dims.at(1) = channels;
    return Shape(dims);
}

/// The dimensions of `full` along which a value of shape `part` is repeated when it broadcasts.
inline Ints broadcast_axes(const Shape& part, const Shape& full) {
    Ints axes;
    const int extra = full.rank() - part.rank();
    for (int i = 0; i < full.rank(); ++i)
        if (i < extra || (part[i - extra] == 1 && full[i] != 1)) axes.push_back(i);
    return axes;
}

/// Adds a Pointwise node whose outputs are broadcast to `shape`, even if its inputs do not reach
/// that shape.
inline std::vector<ValueId> pointwise_over(Graph& graph, const std::string& name,
                                           const std::string& code, std::vector<ValueId> inputs,
                                           const Doubles& scalars, const Shape& shape) {
    return graph.add(
        "Pointwise", name, std::move(inputs),
        Attrs{{"code", code}, {"scalars", scalars}, {"shape", Ints(shape.to_vector())}});
}

/// The values as the node's first outputs: in the outputs' shapes and types.
inline std::vector<ValueId> as_outputs(Graph& graph, const Node& node,
                                       std::vector<ValueId> values) {
    for (std::size_t i = 0; i < values.size(); ++i) {
        const TensorSpec wanted = graph.spec(node.outputs[i]);
        values[i] = graph.reshape(node.name + "/shape", values[i], wanted.shape);
        if (graph.spec(values[i]).dtype != wanted.dtype)
            values[i] = graph.add1("Cast", node.name + "/typed", {values[i]},
                                   Attrs{{"dtype", std::string(name_of(wanted.dtype))}});
    }
    return values;
}

}  // namespace dlprim
