// SPDX-License-Identifier: MIT
// Cast: the same elements in another dtype, by C's conversions. There are two exceptions: float to
// integer saturates (NaN becomes 0), and a conversion to bool tests whether an element differs from
// 0. With `reinterpret`, the bits stay as they are.
#pragma once

#include "engine/engine.hpp"
#include "graph/declared_operator.hpp"
#include "graph/defines_edges.hpp"

namespace dlprim::cast {

class Cast : public DeclaredOperator<ops::Cast>, public DefinesEdges {
  public:
    FloatTypes float_types(const Attrs&) const override { return FloatTypes::all; }
    bool defines_edges(const Attrs&) const override { return true; }
    std::vector<TensorSpec> infer(const Attrs& attrs,
                                  std::span<const TensorSpec> inputs) const override;
    bool differentiable() const override { return true; }
    void gradient(GradientContext& context) const override;
    bool lower(Graph& graph, const Node& node, std::vector<ValueId>& outputs) const override;
    void oracle(OracleCall& call) const override;
    void oracle_backward(OracleBackwardCall& call) const override;
};

// Each function registers the engines of one file.
void add_convert_engine(EngineRegistry& engines);  ///< convert.cpp
void add_host_engine(EngineRegistry& engines);     ///< host.cpp
void add_narrow_engine(EngineRegistry& engines);   ///< narrow.cpp

}  // namespace dlprim::cast
