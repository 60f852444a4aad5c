// SPDX-License-Identifier: MIT
// Reduction: the sum, sum of squares, sum of absolute values or mean over some dimensions, times a
// factor.
#pragma once

#include "graph/declared_operator.hpp"

namespace dlprim::reduction {

class Reduction : public DeclaredOperator<ops::Reduction> {
  public:
    FloatTypes float_types(const Attrs&) const override { return FloatTypes::wide; }
    std::vector<TensorSpec> infer(const Attrs& attrs,
                                  std::span<const TensorSpec> inputs) const override;
    bool differentiable() const override { return true; }
    void gradient(GradientContext& context) const override;
    bool lower(Graph& graph, const Node& node, std::vector<ValueId>& outputs) const override;
    void oracle(OracleCall& call) const override;
    void oracle_backward(OracleBackwardCall& call) const override;
};

}  // namespace dlprim::reduction
