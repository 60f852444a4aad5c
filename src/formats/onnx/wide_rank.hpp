// SPDX-License-Identifier: MIT
// Tensors of more dimensions than a Shape has (Shape::max_rank), as exporters write them for
// windows of volumes and repeated axes. Operators never see them: dimensions that stay together in
// a node are merged before its rule runs, and come apart again in its results.
#pragma once

#include "formats/onnx/call.hpp"

#include <optional>
#include <vector>

namespace dlprim::onnx {

/// The elements as a tensor of these dimensions, of which there may be AnyValue::max_rank. The
/// operator deduces dimension `deduced`, as Builder::reshape() says. Throws Error(invalid_argument)
/// where the numbers of elements differ, and Error(unsupported) where there are more dimensions.
AnyValue view(Builder& build, Ref elements, const Ints& dims, int deduced = -1);

/// The transposition by `order`, a permutation, of elements with these dimensions. Throws
/// Error(unsupported) where more than Shape::max_rank groups of dimensions move.
AnyValue transposed(Builder& build, Ref elements, const Ints& dims, const Ints& order);

/// What is to be repeated to `shape`, which is the tensor of dimensions `dims` then.
struct Expansion {
    Ref input;
    Shape shape;
    Ints dims;
};
/// The expansion of elements with these dimensions to what they and `wanted` broadcast to.
Expansion merged_expansion(Builder& build, Ref elements, const Ints& dims, const Ints& wanted);

/// A node of the same type on tensors whose dimensions were merged.
struct MergedNode {
    /// Dimensions of the node's inputs that became one, and whether the node works along them.
    struct Group {
        Ints dims;
        bool is_axis = false;
    };

    Node node;
    std::vector<AnyValue> inputs;
    std::optional<Ints> dims;     ///< of every result, if they are known
    std::vector<Group> groups;    ///< else what results' dimensions stand for
    bool drops_axes = false;      ///< results have no axes
    std::optional<Ints> in_axis;  ///< stand in results in place of the axis

    /// A result of the node as it is without merging.
    AnyValue restored(Builder& build, Ref result) const;
};

/// The node with dimensions merged; none where no input has more than Shape::max_rank of them, or
/// where the node's rule knows how to treat them, or nothing does. Throws Error(unsupported) where
/// more than Shape::max_rank are left.
std::optional<MergedNode> merge_dimensions(Builder& build, const Node& node, const Rule& rule,
                                           std::int64_t version,
                                           const std::vector<AnyValue>& inputs);

}  // namespace dlprim::onnx
