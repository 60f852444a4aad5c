// SPDX-License-Identifier: MIT
// Abs: |x| element by element.
#pragma once

#include "graph/operator.hpp"

namespace dlprim::abs_op {

class Abs : public Operator {
  public:
    std::string_view type() const override { return "Abs"; }
    FloatTypes float_types(const Attrs&) const override { return FloatTypes::all; }
    const Schema& schema() const override;
    std::vector<TensorSpec> infer(const Attrs& attrs,
                                  std::span<const TensorSpec> inputs) const override;
    bool differentiable() const override { return true; }
    void gradient(GradientContext& context) const override;
    bool lower(Graph& graph, const Node& node, std::vector<ValueId>& outputs) const override;
    void oracle(OracleCall& call) const override;
    void oracle_backward(OracleBackwardCall& call) const override;
};

std::unique_ptr<Operator> make_operator();

}  // namespace dlprim::abs_op
