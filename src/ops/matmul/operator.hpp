// SPDX-License-Identifier: MIT
// MatMul: torch.matmul for ranks 1 to 8 with numpy's broadcasting of batch dimensions, with options
// transpose_a, transpose_b, alpha and bias.
#pragma once

#include "graph/declared_operator.hpp"

namespace dlprim::matmul {

class Operator : public DeclaredOperator<ops::MatMul> {
  public:
    FloatTypes float_types(const Attrs&) const override { return FloatTypes::wide; }
    int min_inputs() const override { return 2; }
    int max_inputs() const override { return 3; }
    std::vector<TensorSpec> infer(const Attrs& attrs,
                                  std::span<const TensorSpec> inputs) const override;
    bool expand(Graph& graph, const Node& node, std::vector<ValueId>& outputs) const override;
    void gradient(GradientContext& context) const override;
    double flops(const Attrs& attrs, std::span<const TensorSpec> inputs,
                 std::span<const TensorSpec> outputs) const override;
    void oracle(OracleCall& call) const override;
    void oracle_backward(OracleBackwardCall& call) const override;
};

std::unique_ptr<dlprim::Operator> make_operator();

}  // namespace dlprim::matmul
