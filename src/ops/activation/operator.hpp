// SPDX-License-Identifier: MIT
// Activation: a function of one variable, element by element, from the table
// engine/activations.hpp.
//
// It stays a separate node until it is lowered, so that the planner can fuse it into the operator
// before it. expand() resolves its parameters, so that passes can read `alpha` and `beta`.
#pragma once

#include "graph/operator.hpp"

namespace dlprim::activation {

class ActivationOperator : public Operator {
  public:
    std::string_view type() const override { return "Activation"; }
    FloatTypes float_types(const Attrs&) const override { return FloatTypes::all; }
    const Schema& schema() const override;
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

/// The gradient dx as an expression of dy = x0 and y = x1 (p0 is alpha), for functions whose
/// derivative can be computed from their value. Then the input need not be kept.
std::optional<std::string> gradient_from_output(const std::string& name, double alpha);

std::unique_ptr<Operator> make_operator();
std::unique_ptr<Operator> make_backward();

}  // namespace dlprim::activation
