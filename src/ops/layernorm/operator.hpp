// SPDX-License-Identifier: MIT
// LayerNorm: normalises each sample's trailing dimensions to mean 0 and variance 1, then applies
// weight and bias.
//
// It expands into NormalizeRows, which GroupNorm uses too, and a Pointwise.
#pragma once

#include "graph/declared_operator.hpp"

namespace dlprim::layernorm {

class LayerNorm : public DeclaredOperator<ops::LayerNorm> {
  public:
    FloatTypes float_types(const Attrs&) const override { return FloatTypes::wide; }
    int outputs(const Attrs& attrs) const override {
        return attrs.boolean("return_statistics") ? 3 : 1;
    }
    std::vector<ParamSpec> params(const Attrs& attrs,
                                  std::span<const TensorSpec> inputs) const override;
    std::vector<TensorSpec> infer(const Attrs& attrs,
                                  std::span<const TensorSpec> inputs) const override;
    bool expand(Graph& graph, const Node& node, std::vector<ValueId>& outputs) const override;
    void oracle(OracleCall& call) const override;
    void oracle_backward(OracleBackwardCall& call) const override;
};

struct NormalizeRowsOptions {
    static constexpr std::string_view type = "NormalizeRows";
    double eps = 1e-5;
    bool return_mean = false;
    static constexpr auto fields() {
        return ops::option_table(ops::option<&NormalizeRowsOptions::eps>("added to the variance"),
                                 ops::option<&NormalizeRowsOptions::return_mean>(
                                     "whether a third output has the mean of each row"));
    }
};

/// Input: [rows, columns]. Outputs: (x - mean) / sqrt(variance + eps) for each row, and 1 /
/// sqrt(variance + eps) of shape [rows, 1]; with return_mean the means of that shape, too. The
/// gradient needs only the first two.
class NormalizeRows : public InternalOperator<NormalizeRowsOptions> {
  public:
    int outputs(const Attrs& attrs) const override { return attrs.boolean("return_mean") ? 3 : 2; }
    std::vector<TensorSpec> infer(const Attrs& attrs,
                                  std::span<const TensorSpec> inputs) const override;
    bool differentiable() const override { return true; }
    void gradient(GradientContext& context) const override;
    bool lower(Graph& graph, const Node& node, std::vector<ValueId>& outputs) const override;
};

std::unique_ptr<Operator> make_operator();
std::unique_ptr<Operator> make_normalize_rows();
std::unique_ptr<Operator> make_backward();

}  // namespace dlprim::layernorm
