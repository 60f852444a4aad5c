// SPDX-License-Identifier: MIT
// Attention: scaled dot-product attention, a composite.
#pragma once

#include "graph/operator.hpp"

namespace dlprim::attention {

class Operator : public dlprim::Operator {
  public:
    std::string_view type() const override { return "Attention"; }
    const Schema& schema() const override;
    int min_inputs() const override { return 3; }
    int max_inputs() const override { return 4; }
    std::vector<TensorSpec> infer(const Attrs& attrs,
                                  std::span<const TensorSpec> inputs) const override;
    bool expand(Graph& graph, const Node& node, std::vector<ValueId>& outputs) const override;
    bool differentiable() const override { return true; }
    double flops(const Attrs& attrs, std::span<const TensorSpec> inputs,
                 std::span<const TensorSpec> outputs) const override;
    void oracle(OracleCall& call) const override;
    void oracle_backward(OracleBackwardCall& call) const override;
};

/// What query, key, value and mask, if there is one, broadcast by. With enable_gqa queries
/// [..., heads, L, D] become [..., groups, heads / groups, L, D] for keys and values of as many
/// groups, which get a dimension of 1 there, and so does a mask's dimension of heads; else they
/// stay as they are. Throws Error(invalid_argument) where heads do not divide into groups.
std::vector<Shape> operand_shapes(const Attrs& attrs, const std::vector<Shape>& given);

/// [..., L, S] of q [..., L, D] and k [..., S, D].
Shape scores_shape(const Shape& q, const Shape& k);

}  // namespace dlprim::attention
