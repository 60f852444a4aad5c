// SPDX-License-Identifier: MIT
// Dropout: in training, sets a share of the elements to 0 and scales the rest to keep the mean.
// Otherwise it is the identity. Seed, step, stream and position determine which elements are
// dropped, so the backward pass computes the mask again instead of storing it.
#pragma once

#include "graph/declared_operator.hpp"

namespace dlprim::dropout {

class Dropout : public DeclaredOperator<ops::Dropout> {
  public:
    FloatTypes float_types(const Attrs&) const override { return FloatTypes::all; }
    std::vector<TensorSpec> infer(const Attrs& attrs,
                                  std::span<const TensorSpec> inputs) const override;
    bool expand(Graph& graph, const Node& node, std::vector<ValueId>& outputs) const override;
    void oracle(OracleCall& call) const override;
    void oracle_backward(OracleBackwardCall& call) const override;
};

}  // namespace dlprim::dropout
