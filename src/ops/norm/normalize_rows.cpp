// SPDX-License-Identifier: MIT
// NormalizeRows: shape rule, gradient, lowering to Pointwise.
#include "graph/declared_operator.hpp"
#include "graph/lowering.hpp"
#include "ops/norm/rows.hpp"

namespace dlprim::norm {

namespace {

struct NormalizeRowsOptions {
    static constexpr std::string_view type = "NormalizeRows";
    double eps = 1e-5;
    bool centered = true, return_mean = false;
    static constexpr auto fields() {
        return ops::option_table(ops::option<&NormalizeRowsOptions::eps>("added to the variance"),
                                 ops::option<&NormalizeRowsOptions::centered>(
                                     "whether the mean is subtracted; else it counts as 0"),
                                 ops::option<&NormalizeRowsOptions::return_mean>(
                                     "whether a third output has the mean of each row"));
    }
};

/// Input: [rows, columns]. Outputs: (x - mean) / sqrt(variance + eps) for each row, and 1 /
/// sqrt(variance + eps) of shape [rows, 1]; with return_mean the means of that shape, too. The
/// gradient needs only the first two. Without `centered` the mean counts as 0.
class NormalizeRows final : public InternalOperator<NormalizeRowsOptions> {
  public:
    int outputs(const Attrs& attrs) const override { return attrs.boolean("return_mean") ? 3 : 2; }

    std::vector<TensorSpec> infer(const Attrs& attrs,
                                  std::span<const TensorSpec> inputs) const override {
        require(inputs[0].shape.rank() == 2, "input of shape ", inputs[0].shape,
                " is not a matrix");
        const TensorSpec column{Shape{inputs[0].shape[0], 1}, inputs[0].dtype};
        if (attrs.boolean("return_mean")) return {inputs[0], column, column};
        return {inputs[0], column};
    }

    void gradient(GradientContext& context) const override {
        Graph& graph = context.graph;
        const Node& node = context.node;
        const ValueId dy = context.output_gradients[0], y = node.outputs[0], rstd = node.outputs[1];
        if (dy == no_value) return;
        const std::string at = node.name + "/backward";
        const Shape column = graph.shape(rstd);
        if (!node.attrs.boolean("centered")) {
            const ValueId with_y = graph.reshape(
                at + "/with_y", graph.pointwise1(at + "/mean", "y0 = mean[1](x0 * x1)", {dy, y}),
                column);
            context.input_gradients[0] =
                graph.pointwise1(at, "y0 = (x0 - x1 * x3) * x2", {dy, y, rstd, with_y});
            return;
        }
        const auto means =
            graph.pointwise(at + "/means", "y0 = mean[1](x0); y1 = mean[1](x0 * x1)", {dy, y});
        const ValueId alone = graph.reshape(at + "/alone", means[0], column);
        const ValueId with_y = graph.reshape(at + "/with_y", means[1], column);
        context.input_gradients[0] =
            graph.pointwise1(at, "y0 = (x0 - x3 - x1 * x4) * x2", {dy, y, rstd, alone, with_y});
    }

    bool lower(Graph& graph, const Node& node, std::vector<ValueId>& outputs) const override {
        const ValueId x = node.inputs[0];
        const Shape column{graph.shape(x)[0], 1};
        if (!node.attrs.boolean("centered")) {
            const ValueId square = graph.reshape(
                node.name + "/square",
                graph.pointwise1(node.name + "/squares", "y0 = mean[1](x0 * x0)", {x}), column);
            const ValueId rstd = graph.pointwise1(node.name + "/deviation", "y0 = rsqrt(x0 + p0)",
                                                  {square}, {node.attrs.number("eps")});
            outputs = {graph.pointwise1(node.name, "y0 = x0 * x1", {x, rstd}), rstd};
            return true;
        }
        const ValueId mean =
            graph.reshape(node.name + "/mean_shape",
                          graph.pointwise1(node.name + "/mean", "y0 = mean[1](x0)", {x}), column);
        // The mean's rounding error, `rest`, matters if the mean is large compared with the
        // deviation.
        const auto moments = graph.pointwise(
            node.name + "/moments", "d = x0 - x1; y0 = mean[1](d); y1 = mean[1](d * d)", {x, mean});
        const ValueId rest = graph.reshape(node.name + "/rest", moments[0], column);
        const ValueId square = graph.reshape(node.name + "/square", moments[1], column);
        const ValueId rstd = graph.pointwise1(node.name + "/deviation",
                                              "v = x1 - x0 * x0; y0 = rsqrt((v < 0 ? 0 : v) + p0)",
                                              {rest, square}, {node.attrs.number("eps")});
        outputs = {graph.pointwise1(node.name, "y0 = (x0 - x1 - x2) * x3", {x, mean, rest, rstd}),
                   rstd};
        if (node.attrs.boolean("return_mean"))
            outputs.push_back(
                graph.pointwise1(node.name + "/whole_mean", "y0 = x0 + x1", {mean, rest}));
        return true;
    }
};

}  // namespace

std::unique_ptr<Operator> make_normalize_rows() {
    return std::make_unique<NormalizeRows>();
}

}  // namespace dlprim::norm
