// SPDX-License-Identifier: MIT
// GroupNorm: normalises each sample's groups of channels to mean 0 and variance 1, then applies
// scale and offset per channel. It expands into NormalizeRows and a Pointwise.
#pragma once

#include "graph/declared_operator.hpp"

namespace dlprim::groupnorm {

class GroupNorm : public DeclaredOperator<ops::GroupNorm> {
  public:
    FloatTypes float_types(const Attrs&) const override { return FloatTypes::wide; }
    int outputs(const Attrs& attrs) const override {
        return attrs.boolean("return_statistics") ? 3 : 1;
    }
    std::vector<ParamSpec> params(const Attrs& attrs,
                                  std::span<const TensorSpec> inputs) const override;
    std::vector<TensorSpec> infer(const Attrs& attrs,
                                  std::span<const TensorSpec> inputs) const override;
    bool expand(Graph& graph, const Node& node, std::vector<ValueId>& outputs) const override;
    void oracle(OracleCall& call) const override;
    void oracle_backward(OracleBackwardCall& call) const override;
};

std::unique_ptr<Operator> make_operator();
std::unique_ptr<Operator> make_backward();

}  // namespace dlprim::groupnorm
