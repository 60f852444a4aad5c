// SPDX-License-Identifier: MIT
// SoftmaxWithLoss: the cross entropy of logits [N, C, ...] and labels [N, ...], averaged over the
// labels that count: a logarithmic Softmax followed by an NLLLoss.
#pragma once

#include "graph/declared_operator.hpp"

#include <cstdint>
#include <limits>

namespace dlprim::softmax_with_loss {

/// The value of ignore_index if every label counts.
inline constexpr std::int64_t no_label = std::numeric_limits<std::int64_t>::min();

class SoftmaxWithLoss : public DeclaredOperator<ops::SoftmaxWithLoss> {
  public:
    FloatTypes float_types(const Attrs&) const override { return FloatTypes::wide; }
    int min_inputs() const override { return 2; }
    int max_inputs() const override { return 2; }
    std::pair<int, std::int64_t> label_input(const Attrs& attrs,
                                             std::span<const TensorSpec> inputs) const override;
    std::vector<TensorSpec> infer(const Attrs& attrs,
                                  std::span<const TensorSpec> inputs) const override;
    bool expand(Graph& graph, const Node& node, std::vector<ValueId>& outputs) const override;
    void oracle(OracleCall& call) const override;
    void oracle_backward(OracleBackwardCall& call) const override;
};

}  // namespace dlprim::softmax_with_loss
