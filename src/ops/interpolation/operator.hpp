// SPDX-License-Identifier: MIT
// The operator Interpolation; operator.cpp has its shapes and gradient, oracle.cpp its oracle.
#pragma once

#include "graph/declared_operator.hpp"

namespace dlprim::interpolation {

class Interpolation : public DeclaredOperator<ops::Interpolation> {
  public:
    std::vector<TensorSpec> infer(const Attrs& attrs,
                                  std::span<const TensorSpec> inputs) const override;
    FloatTypes float_types(const Attrs&) const override { return FloatTypes::wide; }
    bool expand(Graph& graph, const Node& node, std::vector<ValueId>& outputs) const override;
    bool differentiable() const override { return true; }
    void gradient(GradientContext& context) const override;
    void oracle(OracleCall& call) const override;
    void oracle_backward(OracleBackwardCall& call) const override;
};

std::unique_ptr<Operator> make_operator();
std::unique_ptr<Operator> make_backward();

}  // namespace dlprim::interpolation
