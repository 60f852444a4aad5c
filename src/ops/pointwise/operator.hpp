// SPDX-License-Identifier: MIT
// The operator Pointwise and its engines.
#pragma once

#include "engine/engine.hpp"
#include "graph/declared_operator.hpp"
#include "graph/defines_edges.hpp"
#include "ops/pointwise/options.hpp"

namespace dlprim::pointwise {

class PointwiseOperator : public DeclaredOperator<ops::Pointwise>, public DefinesEdges {
  public:
    FloatTypes float_types(const Attrs&) const override { return FloatTypes::all; }
    /// Sums overflow or not by their order, and random numbers want seeds.
    bool defines_edges(const Attrs& attrs) const override;
    int min_inputs() const override { return 0; }
    int max_inputs() const override { return 64; }
    int outputs(const Attrs& attrs) const override {
        return static_cast<int>(parse(attrs.text("code")).outputs.size());
    }
    std::vector<TensorSpec> infer(const Attrs& attrs,
                                  std::span<const TensorSpec> inputs) const override;
    void gradient(GradientContext& context) const override {
        pointwise_gradient(read_options(context.node.attrs), context);
    }
    /// Pairs by the kind of output. The caller compares shapes, types and layouts.
    std::vector<std::pair<int, int>> in_place(const Node& node) const override;
    void oracle(OracleCall& call) const override { pointwise_oracle(call); }
    void oracle_backward(OracleBackwardCall& call) const override {
        pointwise_oracle_backward(call);
    }
};

/// What the two engines share: applicability, layouts, cost.
class PointwiseEngine : public Engine {
  public:
    PointwiseEngine(std::string name, bool on_host)
        : Engine(std::move(name), "Pointwise", on_host) {}
    Verdict is_applicable(const Traits& device, const Problem& problem) const override;
    std::vector<LayoutChoice> layouts(const Traits& device, const Problem& problem) const override;
    bool addresses_strides() const override { return true; }
    double estimate(const Traits& device, const Problem& problem,
                    const Tuning& tuning) const override;
};

std::unique_ptr<Operator> make_operator();

}  // namespace dlprim::pointwise
