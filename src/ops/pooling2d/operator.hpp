// SPDX-License-Identifier: MIT
// The operator Pooling2D; operator.cpp has its shapes and gradient, oracle.cpp its oracle.
#pragma once

#include "graph/declared_operator.hpp"
#include "ops/pooling2d/options.hpp"

namespace dlprim::pooling2d {

class Pooling2D : public DeclaredOperator<ops::Pooling2D> {
  public:
    int outputs(const Attrs& attrs) const override {
        return attrs.boolean("return_indices") ? 2 : 1;
    }
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
std::unique_ptr<Operator> make_with_planes();
std::unique_ptr<Operator> make_backward_of_planes();

}  // namespace dlprim::pooling2d
