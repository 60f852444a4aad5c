// SPDX-License-Identifier: MIT
// Pooling and its gradient; operator.cpp has their shapes and rewriting, oracle.cpp their oracles.
#pragma once

#include "graph/declared_operator.hpp"

namespace dlprim::pooling {

class Pooling : public DeclaredOperator<ops::Pooling> {
  public:
    int outputs(const Attrs& attrs) const override {
        return attrs.text("positions") == "none" ? 1 : 2;
    }
    FloatTypes float_types(const Attrs& attrs) const override;
    std::vector<TensorSpec> infer(const Attrs& attrs,
                                  std::span<const TensorSpec> inputs) const override;
    bool expand(Graph& graph, const Node& node, std::vector<ValueId>& outputs) const override;
    void gradient(GradientContext& context) const override;
    bool lower(Graph& graph, const Node& node, std::vector<ValueId>& outputs) const override;
    void oracle(OracleCall& call) const override;
    void oracle_backward(OracleBackwardCall& call) const override;
};

/// dy and, for max, the positions of maxima -> dx. The sizes of x are an option, so that x need not
/// be kept.
class PoolingBackward : public DeclaredOperator<ops::PoolingBackward> {
  public:
    int max_inputs() const override { return 2; }
    FloatTypes float_types(const Attrs& attrs) const override;
    std::vector<TensorSpec> infer(const Attrs& attrs,
                                  std::span<const TensorSpec> inputs) const override;
    bool expand(Graph& graph, const Node& node, std::vector<ValueId>& outputs) const override;
    void oracle(OracleCall& call) const override;

    /// The shape of x.
    static Shape input_shape(const Attrs& attrs, const Shape& dy);
};

}  // namespace dlprim::pooling
