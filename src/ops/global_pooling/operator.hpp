// SPDX-License-Identifier: MIT
// GlobalPooling: the maximum or mean of each channel's plane.
#pragma once

#include "graph/declared_operator.hpp"

namespace dlprim::global_pooling {

class GlobalPooling : public DeclaredOperator<ops::GlobalPooling> {
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

std::unique_ptr<Operator> make_operator();

}  // namespace dlprim::global_pooling
