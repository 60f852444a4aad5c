// SPDX-License-Identifier: MIT
// MSELoss: the squared differences of two tensors: their mean, their sum, or each.
#pragma once

#include "graph/operator.hpp"

namespace dlprim::mse_loss {

class MSELoss : public Operator {
  public:
    std::string_view type() const override { return "MSELoss"; }
    FloatTypes float_types(const Attrs&) const override { return FloatTypes::wide; }
    const Schema& schema() const override;
    int min_inputs() const override { return 2; }
    int max_inputs() const override { return 2; }
    std::vector<TensorSpec> infer(const Attrs& attrs,
                                  std::span<const TensorSpec> inputs) const override;
    bool differentiable() const override { return true; }
    void gradient(GradientContext& context) const override;
    bool lower(Graph& graph, const Node& node, std::vector<ValueId>& outputs) const override;
    void oracle(OracleCall& call) const override;
    void oracle_backward(OracleBackwardCall& call) const override;
};

std::unique_ptr<Operator> make_operator();

}  // namespace dlprim::mse_loss
