// SPDX-License-Identifier: MIT
// LayerNorm, RMSNorm and GroupNorm, which differ in their rows (rows.hpp), and their gradients from
// the statistics that a forward call returned.
//
// They expand into NormalizeRows and a Pointwise.
#include "graph/declared_operator.hpp"
#include "graph/lowering.hpp"
#include "ops/norm/rows.hpp"

#include <type_traits>

namespace dlprim::norm {

namespace {

using RowsOf = Rows(const Attrs&, const Shape&);

template <typename Options, RowsOf& rows_of>
class Norm final : public DeclaredOperator<Options> {
  public:
    FloatTypes float_types(const Attrs&) const override { return FloatTypes::wide; }
    int outputs(const Attrs& attrs) const override {
        if (!attrs.boolean("return_statistics")) return 1;
        return std::is_same_v<Options, ops::RMSNorm> ? 2 : 3;
    }

    std::vector<ParamSpec> params(const Attrs& attrs,
                                  std::span<const TensorSpec> inputs) const override {
        const Rows rows = rows_of(attrs, inputs[0].shape);
        const TensorSpec spec{rows.weight, inputs[0].dtype};
        std::vector<ParamSpec> result{{spec, Init::constant(1), true},
                                      {spec, Init::constant(0), true}};
        result.resize(rows.parameters);
        return result;
    }

    std::vector<TensorSpec> infer(const Attrs& attrs,
                                  std::span<const TensorSpec> inputs) const override {
        const Rows rows = rows_of(attrs, inputs[0].shape);
        require(is_float(inputs[0].dtype), "input has dtype ", name_of(inputs[0].dtype),
                ", a float type is needed");
        require(inputs.size() == 1 + rows.parameters, "has ", inputs.size() - 1, " parameters, ",
                rows.parameters, " are needed");
        for (std::size_t i = 1; i < inputs.size(); ++i)
            require(inputs[i].shape == rows.weight, "parameter ", i - 1, " has shape ",
                    inputs[i].shape, ", the input of shape ", inputs[0].shape, " needs ",
                    rows.weight);
        if (!attrs.boolean("return_statistics")) return {inputs[0]};
        const TensorSpec statistic{rows.statistic,
                                   inputs[0].dtype == DType::f64 ? DType::f64 : DType::f32};
        std::vector<TensorSpec> made(1 + rows.statistics(), statistic);
        made[0] = inputs[0];
        return made;
    }

    bool expand(Graph& graph, const Node& node, std::vector<ValueId>& outputs) const override {
        const Shape shape = graph.shape(node.inputs[0]);
        const Rows rows = rows_of(node.attrs, shape);
        const bool more = node.attrs.boolean("return_statistics");
        const std::vector<ValueId> made =
            graph.add("NormalizeRows", node.name + "/normalize",
                      {graph.reshape(node.name + "/rows", node.inputs[0], rows.matrix)},
                      Attrs{{"eps", rows.eps},
                            {"centered", rows.centered},
                            {"return_mean", more && rows.centered}});
        ValueId y = made[0];
        if (rows.parameters > 0) {
            std::vector<ValueId> inputs{graph.reshape(node.name + "/shape", y, rows.scaled)};
            for (std::size_t i = 1; i < node.inputs.size(); ++i)
                inputs.push_back(graph.reshape(node.name + "/line", node.inputs[i], rows.scale));
            y = graph.pointwise1(
                node.name, rows.parameters == 2 ? "y0 = x0 * x1 + x2" : "y0 = x0 * x1", inputs);
            graph.nodes.back().name = node.name;
        }
        outputs = {graph.reshape(node.name + "/shape", y, shape)};
        if (more)  // the mean, where there is one, and 1 over the deviation
            for (std::size_t i = made.size() - 1; i > 0; --i)
                outputs.push_back(graph.reshape(node.name + "/statistic", made[i], rows.statistic));
        return true;
    }

    void oracle(OracleCall& call) const override {
        norm::oracle(rows_of(call.attrs, call.inputs[0].shape), call);
    }
    void oracle_backward(OracleBackwardCall& call) const override {
        norm::oracle_backward(rows_of(call.attrs, call.inputs[0].shape), call);
    }
};

/// Inputs: dy, x, the mean where it was subtracted, r = 1 / sqrt(variance + eps), and the weight
/// where there is one. Outputs: the gradients of x, of the weight and, with a mean, of the bias.
template <typename Options, RowsOf& rows_of>
class NormBackward final : public DeclaredOperator<Options> {
  public:
    static constexpr bool centered = !std::is_same_v<Options, ops::RMSNormBackward>;
    static constexpr std::size_t weight_at = centered ? 4 : 3;

    FloatTypes float_types(const Attrs&) const override { return FloatTypes::wide; }
    int min_inputs() const override { return static_cast<int>(weight_at); }
    int max_inputs() const override { return static_cast<int>(weight_at) + 1; }
    int outputs(const Attrs&) const override { return centered ? 3 : 2; }

    std::vector<TensorSpec> infer(const Attrs& attrs,
                                  std::span<const TensorSpec> inputs) const override {
        const Rows rows = rows_of(attrs, inputs[1].shape);
        require(inputs[0].shape == inputs[1].shape, "dy has shape ", inputs[0].shape, ", x has ",
                inputs[1].shape);
        for (std::size_t i = 2; i < inputs.size(); ++i) {
            const Shape& wanted = i == weight_at ? rows.weight : rows.statistic;
            require(inputs[i].shape == wanted, "operand ", i, " has shape ", inputs[i].shape,
                    ", x of shape ", inputs[1].shape, " needs ", wanted);
        }
        std::vector<TensorSpec> made(centered ? 3 : 2, {rows.weight, inputs.back().dtype});
        made[0] = inputs[1];
        return made;
    }

    bool expand(Graph& graph, const Node& node, std::vector<ValueId>& outputs) const override {
        const Rows rows = rows_of(node.attrs, graph.shape(node.inputs[1]));
        std::vector<ValueId> inputs;
        for (std::size_t i = 0; i < node.inputs.size(); ++i)
            inputs.push_back(graph.reshape(node.name + "/rows", node.inputs[i],
                                           i < 2           ? rows.blocks
                                           : i < weight_at ? rows.row
                                                           : rows.line));
        // The normalised x, the gradient that flows into it, and means along rows: of the flow,
        // with a mean, and of the flow times x.
        const std::string normal = centered ? "((x1 - x2) * x3)" : "(x1 * x2)";
        const std::string deviation = cat("x", weight_at - 1);
        const std::string flow =
            inputs.size() > weight_at ? cat("g = x0 * x", weight_at) : "g = x0";
        const std::string mean = cat("mean", rows.row_axes), sum = cat("sum", rows.line_axes);
        const auto means = graph.pointwise(
            node.name + "/means",
            centered ? cat(flow, "; y0 = ", mean, "(g); y1 = ", mean, "(g * ", normal, ")")
                     : cat(flow, "; y0 = ", mean, "(g * ", normal, ")"),
            inputs);
        const auto sums =
            graph.pointwise(node.name + "/sums",
                            centered ? cat("y0 = ", sum, "(x0 * ", normal, "); y1 = ", sum, "(x0)")
                                     : cat("y0 = ", sum, "(x0 * ", normal, ")"),
                            {inputs.begin(), inputs.begin() + weight_at});
        const std::string alone = cat("x", inputs.size()),
                          with = cat("x", inputs.size() + means.size() - 1);
        for (const ValueId value : means)
            inputs.push_back(graph.reshape(node.name + "/column", value, rows.row));
        std::vector<ValueId> made{
            graph.pointwise1(node.name,
                             cat(flow, "; y0 = (g", centered ? " - " + alone : "", " - ", normal,
                                 " * ", with, ") * ", deviation),
                             inputs)};
        made.insert(made.end(), sums.begin(), sums.end());
        outputs = as_outputs(graph, node, made);
        return true;
    }

    void oracle(OracleCall& call) const override {
        gradient_oracle(rows_of(call.attrs, call.inputs[1].shape), call);
    }
};

}  // namespace

void register_norm(OperatorRegistry& operators, EngineRegistry&) {
    operators.add(std::make_unique<Norm<ops::LayerNorm, layer_rows>>());
    operators.add(std::make_unique<NormBackward<ops::LayerNormBackward, layer_rows>>());
    operators.add(std::make_unique<Norm<ops::RMSNorm, rms_rows>>());
    operators.add(std::make_unique<NormBackward<ops::RMSNormBackward, rms_rows>>());
    operators.add(std::make_unique<Norm<ops::GroupNorm, group_rows>>());
    operators.add(std::make_unique<NormBackward<ops::GroupNormBackward, group_rows>>());
    operators.add(make_normalize_rows());
}

}  // namespace dlprim::norm
