// SPDX-License-Identifier: MIT
// Dropout: in training a share of the elements becomes 0 and the rest grows to keep the mean; else
// the identity. Which elements follows from seed, step, stream and position, so that backward makes
// the mask again rather than keeping it.
#pragma once

#include "graph/operator.hpp"

namespace dlprim::dropout {

class Dropout : public Operator {
  public:
    std::string_view type() const override { return "Dropout"; }
    FloatTypes float_types(const Attrs&) const override { return FloatTypes::all; }
    const Schema& schema() const override;
    std::vector<TensorSpec> infer(const Attrs& attrs,
                                  std::span<const TensorSpec> inputs) const override;
    bool expand(Graph& graph, const Node& node, std::vector<ValueId>& outputs) const override;
    void oracle(OracleCall& call) const override;
    void oracle_backward(OracleBackwardCall& call) const override;
};

}  // namespace dlprim::dropout
