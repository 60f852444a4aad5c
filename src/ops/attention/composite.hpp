// SPDX-License-Identifier: MIT
// The nodes that attention consists of where no engine computes it whole.
#pragma once

#include "graph/graph.hpp"
#include "ops/attention/options.hpp"

#include <string>
#include <vector>

namespace dlprim::attention {

/// Nodes of one attention, which are named after `name`.
class Composite {
  public:
    /// Inputs as AttentionForward's.
    Composite(Graph& graph, std::string name, const Attrs& attrs,
              const std::vector<ValueId>& inputs);

    /// Scaled scores [..., L, S], with masks. Positions that are left out have the lowest float.
    ValueId scores();
    /// `weights` with zeros where positions are left out: rows that are excluded as a whole are 0,
    /// as in PyTorch.
    ValueId left(ValueId weights);
    /// Weights, or their gradient, times dropout's factors, if there is dropout.
    ValueId dropped(const std::string& name, ValueId weights);
    /// weights v, in the shape of the heads.
    ValueId values(ValueId weights, Shape made);
    /// The logarithm of each row's sum of exponentials, of the shape `made`.
    ValueId logarithms(ValueId scores, Shape made);
    /// The weights again from the logarithms, dropped, and the gradient of the scores: p and p (dy
    /// v^T - delta).
    struct Gradients {
        ValueId weights, scores;
    };
    Gradients gradients(ValueId lse, ValueId delta, ValueId dy);
    /// The gradient of scale q k^T of that of the scores, which a soft cap bends.
    ValueId through_softcap(ValueId gradient);

    /// An operand in the shape in which it is broadcast; dy, lse and delta likewise.
    ValueId operand(std::size_t i) const { return operands_[i]; }
    ValueId in_groups(const std::string& name, ValueId value, std::int64_t columns);
    const Options& options() const { return options_; }

  private:
    bool chooses() const;
    /// The condition by which the last two indices of scores are left out; empty: none are.
    std::string unseen() const;

    Graph& graph_;
    std::string name_;
    Options options_;
    std::vector<Shape> shapes_;
    std::vector<ValueId> operands_;
    Sight sight_;
    ValueId products_ = no_value;  ///< scale q k^T
    std::vector<ValueId> run_;     ///< with dropout its seed and step
};

}  // namespace dlprim::attention
