// SPDX-License-Identifier: MIT
// LayerNormBackward: the gradients of LayerNorm from the statistics that its forward call returned.
#include "graph/declared_operator.hpp"
#include "graph/lowering.hpp"
#include "graph/oracle_loops.hpp"
#include "ops/layernorm/operator.hpp"
#include "ops/layernorm/options.hpp"

namespace dlprim::layernorm {

namespace {

/// Inputs: dy, x, the mean and r = 1 / sqrt(variance + eps), and the weight where there is one.
/// Outputs: the gradients of x, of the weight and of the bias.
class LayerNormBackward final : public DeclaredOperator<ops::LayerNormBackward> {
  public:
    FloatTypes float_types(const Attrs&) const override { return FloatTypes::wide; }
    int min_inputs() const override { return 4; }
    int max_inputs() const override { return 5; }
    int outputs(const Attrs&) const override { return 3; }

    std::vector<TensorSpec> infer(const Attrs& attrs,
                                  std::span<const TensorSpec> inputs) const override {
        const Options options = options_of(attrs, inputs[1].shape);
        require(inputs[0].shape == inputs[1].shape, "dy has shape ", inputs[0].shape.str(),
                ", x has ", inputs[1].shape.str());
        for (std::size_t i = 2; i < inputs.size(); ++i) {
            const Shape& wanted = i == 4 ? options.normalized : options.statistic;
            require(inputs[i].shape == wanted, "operand ", i, " has shape ", inputs[i].shape.str(),
                    ", x of shape ", inputs[1].shape.str(), " needs ", wanted.str());
        }
        const TensorSpec line{options.normalized, inputs.back().dtype};
        return {inputs[1], line, line};
    }

    bool expand(Graph& graph, const Node& node, std::vector<ValueId>& outputs) const override {
        const Options options = options_of(node.attrs, graph.shape(node.inputs[1]));
        const Shape column{options.matrix[0], 1}, line{options.matrix[1]};
        std::vector<ValueId> inputs;
        for (std::size_t i = 0; i < node.inputs.size(); ++i)
            inputs.push_back(graph.reshape(node.name + "/rows", node.inputs[i],
                                           i < 2   ? options.matrix
                                           : i < 4 ? column
                                                   : line));
        const std::string flow = inputs.size() == 5 ? "g = x0 * x4" : "g = x0";
        const auto means =
            graph.pointwise(node.name + "/means",
                            flow + "; y0 = mean[1](g); y1 = mean[1](g * ((x1 - x2) * x3))", inputs);
        const auto sums = graph.pointwise(node.name + "/sums",
                                          "y0 = sum[0](x0 * ((x1 - x2) * x3)); y1 = sum[0](x0)",
                                          {inputs[0], inputs[1], inputs[2], inputs[3]});
        const std::string alone = cat("x", inputs.size()), with = cat("x", inputs.size() + 1);
        for (const ValueId mean : means)
            inputs.push_back(graph.reshape(node.name + "/column", mean, column));
        const ValueId dx = graph.pointwise1(
            node.name, cat(flow, "; y0 = (g - ", alone, " - (x1 - x2) * x3 * ", with, ") * x3"),
            inputs);
        outputs = as_outputs(graph, node, {dx, sums[0], sums[1]});
        return true;
    }

    void oracle(OracleCall& call) const override {
        const HostArray &dy = call.inputs[0], &x = call.inputs[1];
        const Options options = options_of(call.attrs, x.shape);
        const bool weighted = call.inputs.size() == 5;
        call.outputs.resize(3);
        HostArray& dx = make_array(call.outputs, 0, x.shape, x.dtype);
        HostArray& weight =
            make_array(call.outputs, 1, options.normalized, call.inputs.back().dtype);
        HostArray& bias = make_array(call.outputs, 2, options.normalized, weight.dtype);
        const auto columns = static_cast<std::size_t>(options.matrix[1]);
        for (std::size_t r = 0; r < static_cast<std::size_t>(options.matrix[0]); ++r) {
            const double mean = call.inputs[2].data[r], rstd = call.inputs[3].data[r];
            double sum = 0, with_x = 0;
            const auto flow = [&](std::size_t k) {
                return dy.data[r * columns + k] * (weighted ? call.inputs[4].data[k] : 1);
            };
            const auto normal = [&](std::size_t k) {
                return (x.data[r * columns + k] - mean) * rstd;
            };
            for (std::size_t k = 0; k < columns; ++k) {
                sum += flow(k);
                with_x += flow(k) * normal(k);
                weight.data[k] += dy.data[r * columns + k] * normal(k);
                bias.data[k] += dy.data[r * columns + k];
            }
            const auto count = static_cast<double>(columns);
            for (std::size_t k = 0; k < columns; ++k)
                dx.data[r * columns + k] =
                    (flow(k) - sum / count - normal(k) * with_x / count) * rstd;
        }
    }

  private:
    /// Those of LayerNorm that shapes depend on.
    static Options options_of(const Attrs& attrs, const Shape& x) {
        Attrs all = attrs;
        all.set("eps", 0.0).set("elementwise_affine", false).set("bias", false);
        return Options(all, x);
    }
};

}  // namespace

std::unique_ptr<Operator> make_backward() {
    return std::make_unique<LayerNormBackward>();
}

}  // namespace dlprim::layernorm
