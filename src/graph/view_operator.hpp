// SPDX-License-Identifier: MIT
// ViewOperator: the base of operators whose output is the input's memory under another shape.
#pragma once

#include "graph/operator.hpp"

namespace dlprim {

/// An operator of this kind adds its type, its options and the rule for the shape.
class ViewOperator : public Operator {
  public:
    /// The output's shape, with as many elements as the input has. Throws as infer() does.
    virtual Shape view(const Attrs& attrs, const Shape& input) const = 0;

    bool is_view() const final { return true; }
    FloatTypes float_types(const Attrs&) const final { return FloatTypes::all; }
    std::vector<TensorSpec> infer(const Attrs& attrs,
                                  std::span<const TensorSpec> inputs) const final;
    /// The output's gradient under the input's shape.
    void gradient(GradientContext& context) const final;
    void oracle(OracleCall& call) const final;
    void oracle_backward(OracleBackwardCall& call) const final;
};

}  // namespace dlprim
