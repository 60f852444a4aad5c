// SPDX-License-Identifier: MIT
// The operator of a row.
#pragma once

#include "ops/expressions/row.hpp"

namespace dlprim::expressions {

class ExpressionOperator final : public Operator {
  public:
    explicit ExpressionOperator(const Row& row) : row_(row) {}

    std::string_view type() const override { return row_.type; }
    const Schema& schema() const override { return row_.schema(); }
    FloatTypes float_types(const Attrs&) const override { return row_.float_types; }
    int min_inputs() const override { return static_cast<int>(row_.inputs.size()); }
    std::vector<ParamSpec> params(const Attrs& attrs,
                                  std::span<const TensorSpec> inputs) const override;
    std::vector<TensorSpec> infer(const Attrs& attrs,
                                  std::span<const TensorSpec> inputs) const override;
    /// Resolves the options, and makes a node of an activation that is applied to the result.
    bool expand(Graph& graph, const Node& node, std::vector<ValueId>& outputs) const override;
    void gradient(GradientContext& context) const override;
    bool lower(Graph& graph, const Node& node, std::vector<ValueId>& outputs) const override;
    std::optional<EpilogueStage> as_epilogue(const Attrs& attrs) const override {
        return row_.epilogue == nullptr ? std::nullopt : row_.epilogue(attrs);
    }
    void oracle(OracleCall& call) const override;
    void oracle_backward(OracleBackwardCall& call) const override;

  private:
    void check_shapes(std::span<const TensorSpec> inputs) const;
    /// The operands of a node: its inputs, of which the parameter has a shape that broadcasts.
    std::vector<ValueId> operands(Graph& graph, const Node& node, const std::string& at) const;

    const Row& row_;
};

}  // namespace dlprim::expressions
