// SPDX-License-Identifier: MIT
// Softmax: exp(x) divided by its sum along one dimension, or the logarithm of that.
#pragma once

#include "graph/declared_operator.hpp"
#include "ops/softmax/options.hpp"

#include <string>

namespace dlprim::softmax {

class Softmax : public DeclaredOperator<ops::Softmax> {
  public:
    FloatTypes float_types(const Attrs&) const override { return FloatTypes::wide; }
    std::vector<TensorSpec> infer(const Attrs& attrs,
                                  std::span<const TensorSpec> inputs) const override;
    void gradient(GradientContext& context) const override;
    bool lower(Graph& graph, const Node& node, std::vector<ValueId>& outputs) const override;
    void oracle(OracleCall& call) const override;
    void oracle_backward(OracleBackwardCall& call) const override;
};

/// Adds the nodes that compute dx from dy and the result y.
ValueId gradient_from_output(Graph& graph, const std::string& at, const Options& options,
                             ValueId dy, ValueId y);
/// The oracle of that, and the magnitudes of the terms that it adds up.
void oracle_from_output(const Options& options, const HostArray& y, const HostArray& dy,
                        HostArray& dx, HostArray* terms);

std::unique_ptr<Operator> make_backward();

}  // namespace dlprim::softmax
