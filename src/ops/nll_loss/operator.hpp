// SPDX-License-Identifier: MIT
// NLLLoss: the negative of the input's entry (a log probability) at each label, times the weight of
// the label's class if there is a third input. The mean is over the labels by their weights.
#pragma once

#include "graph/declared_operator.hpp"
#include "ops/nll_loss/options.hpp"

namespace dlprim::nll_loss {

class NLLLoss : public DeclaredOperator<ops::NLLLoss> {
  public:
    FloatTypes float_types(const Attrs&) const override { return FloatTypes::wide; }
    int min_inputs() const override { return 2; }
    int max_inputs() const override { return 3; }
    int outputs(const Attrs& attrs) const override {
        return attrs.boolean("return_weight") ? 2 : 1;
    }
    std::pair<int, std::int64_t> label_input(const Attrs& attrs,
                                             std::span<const TensorSpec> inputs) const override;
    std::vector<TensorSpec> infer(const Attrs& attrs,
                                  std::span<const TensorSpec> inputs) const override;
    void gradient(GradientContext& context) const override;
    bool lower(Graph& graph, const Node& node, std::vector<ValueId>& outputs) const override;
    void oracle(OracleCall& call) const override;
    void oracle_backward(OracleBackwardCall& call) const override;
};

/// Checks labels and weights (`inputs` from `first` on) against the input of this shape.
void check_operands(const Options& options, const Shape& shape, std::span<const TensorSpec> inputs,
                    std::size_t first);
/// Adds the nodes that compute the outputs where labels have weights.
std::vector<ValueId> weighted(Graph& graph, const Node& node, const Options& options);
/// The sum of the labels' weights, of shape [1].
ValueId total_weight(Graph& graph, const Node& node, const Options& options);

std::unique_ptr<Operator> make_backward();

}  // namespace dlprim::nll_loss
