// SPDX-License-Identifier: MIT
// Elementwise: sum, product or maximum of two tensors with numpy's broadcast, each times a factor.
//
// It stays a separate node until it is lowered, so that the planner can fuse a residual sum into
// the operator before it. Its `activation` becomes an Activation node after it.
#pragma once

#include "graph/operator.hpp"

namespace dlprim::elementwise {

class Elementwise : public Operator {
  public:
    std::string_view type() const override { return "Elementwise"; }
    FloatTypes float_types(const Attrs&) const override { return FloatTypes::all; }
    const Schema& schema() const override;
    int min_inputs() const override { return 2; }
    int max_inputs() const override { return 2; }
    std::vector<TensorSpec> infer(const Attrs& attrs,
                                  std::span<const TensorSpec> inputs) const override;
    bool expand(Graph& graph, const Node& node, std::vector<ValueId>& outputs) const override;
    bool differentiable() const override { return true; }
    void gradient(GradientContext& context) const override;
    std::optional<EpilogueStage> as_epilogue(const Attrs& attrs) const override;
    bool lower(Graph& graph, const Node& node, std::vector<ValueId>& outputs) const override;
    void oracle(OracleCall& call) const override;
    void oracle_backward(OracleBackwardCall& call) const override;
};

std::unique_ptr<Operator> make_operator();

}  // namespace dlprim::elementwise
