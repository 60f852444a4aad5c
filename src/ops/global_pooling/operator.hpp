// SPDX-License-Identifier: MIT
// GlobalPooling: the maximum or mean of each channel's plane.
#pragma once

#include "graph/operator.hpp"

namespace dlprim::global_pooling {

class GlobalPooling : public Operator {
  public:
    std::string_view type() const override { return "GlobalPooling"; }
    FloatTypes float_types(const Attrs&) const override { return FloatTypes::wide; }
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

}  // namespace dlprim::global_pooling
