// SPDX-License-Identifier: MIT
// InnerProduct: [N, ...] -> [N, outputs], y = x W^T + bias with W [outputs, inputs]. The option
// axis is the first dimension of the features; those before it are kept.
#pragma once

#include "graph/declared_operator.hpp"

namespace dlprim::inner_product {

class Operator : public DeclaredOperator<ops::InnerProduct> {
  public:
    FloatTypes float_types(const Attrs&) const override { return FloatTypes::wide; }
    std::vector<ParamSpec> params(const Attrs& attrs,
                                  std::span<const TensorSpec> inputs) const override;
    std::vector<TensorSpec> infer(const Attrs& attrs,
                                  std::span<const TensorSpec> inputs) const override;
    bool expand(Graph& graph, const Node& node, std::vector<ValueId>& outputs) const override;
    bool is_linear_layer() const override { return true; }
    bool differentiable() const override { return true; }
    void gradient(GradientContext& context) const override;
    double flops(const Attrs& attrs, std::span<const TensorSpec> inputs,
                 std::span<const TensorSpec> outputs) const override;
    void oracle(OracleCall& call) const override;
    void oracle_backward(OracleBackwardCall& call) const override;
};

}  // namespace dlprim::inner_product
