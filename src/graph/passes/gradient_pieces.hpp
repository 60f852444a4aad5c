// SPDX-License-Identifier: MIT
// GradientPieces: what flowed back into one value during differentiation, and how it is added up.
//
// A piece is the whole of the value's gradient, or a part of it along one dimension, with zeros
// elsewhere (GradientPart). Where a tensor is cut into slices, as queries, keys and values are, its
// gradient consists of parts that lie beside each other. They become one Concat, which writes every
// element once; a sum of padded parts would write, and read again, the whole tensor for each of
// them.
#pragma once

#include "graph/operator.hpp"

#include <string>
#include <vector>

namespace dlprim {

class GradientPieces {
  public:
    bool empty() const { return pieces_.empty(); }
    void add(ValueId gradient, const GradientPart& part) { pieces_.push_back({gradient, part}); }

    /// The gradient of `value`, which adds the nodes that it needs; there must be a piece.
    ValueId sum(Graph& graph, ValueId value);

  private:
    struct Piece {
        ValueId gradient;
        GradientPart part;
    };
    /// Parts of one dimension, each of which begins where the one before it ends.
    using Run = std::vector<Piece>;

    static std::int64_t end(const Graph& graph, const Piece& piece);
    std::vector<Run> runs(const Graph& graph) const;
    static ValueId join(Graph& graph, const Run& run, ValueId value, const std::string& number);

    std::vector<Piece> pieces_;
};

}  // namespace dlprim
