// SPDX-License-Identifier: MIT
// GroupNormBackward: the gradients of GroupNorm from the statistics that its forward call returned.
#include "graph/declared_operator.hpp"
#include "graph/lowering.hpp"
#include "graph/oracle_loops.hpp"
#include "ops/groupnorm/operator.hpp"
#include "ops/groupnorm/options.hpp"

namespace dlprim::groupnorm {

namespace {

/// Inputs: dy, x, the mean and r = 1 / sqrt(variance + eps) of shape [N, groups], and the weight of
/// each channel where there is one. Outputs: the gradients of x, of the weight and of the bias.
class GroupNormBackward final : public DeclaredOperator<ops::GroupNormBackward> {
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
        const Shape channels{options.channels};
        for (std::size_t i = 2; i < inputs.size(); ++i) {
            const Shape& wanted = i == 4 ? channels : options.statistic;
            require(inputs[i].shape == wanted, "operand ", i, " has shape ", inputs[i].shape.str(),
                    ", x of shape ", inputs[1].shape.str(), " needs ", wanted.str());
        }
        const TensorSpec channel{channels, inputs.back().dtype};
        return {inputs[1], channel, channel};
    }

    bool expand(Graph& graph, const Node& node, std::vector<ValueId>& outputs) const override {
        const Options options = options_of(node.attrs, graph.shape(node.inputs[1]));
        const Shape& blocks = options.blocks;
        const Shape group{blocks[0], blocks[1], 1, 1}, channel{blocks[1], blocks[2], 1};
        std::vector<ValueId> inputs;
        for (std::size_t i = 0; i < node.inputs.size(); ++i)
            inputs.push_back(graph.reshape(node.name + "/blocks", node.inputs[i],
                                           i < 2   ? blocks
                                           : i < 4 ? group
                                                   : channel));
        const std::string flow = inputs.size() == 5 ? "g = x0 * x4" : "g = x0";
        const auto means = graph.pointwise(
            node.name + "/means",
            flow + "; y0 = mean[2,3](g); y1 = mean[2,3](g * ((x1 - x2) * x3))", inputs);
        const auto sums = graph.pointwise(node.name + "/sums",
                                          "y0 = sum[0,3](x0 * ((x1 - x2) * x3)); y1 = sum[0,3](x0)",
                                          {inputs[0], inputs[1], inputs[2], inputs[3]});
        const std::string alone = cat("x", inputs.size()), with = cat("x", inputs.size() + 1);
        inputs.insert(inputs.end(), means.begin(), means.end());
        const ValueId dx = graph.pointwise1(
            node.name, cat(flow, "; y0 = (g - ", alone, " - (x1 - x2) * x3 * ", with, ") * x3"),
            inputs);
        outputs = as_outputs(graph, node, {dx, sums[0], sums[1]});
        return true;
    }

    void oracle(OracleCall& call) const override {
        const HostArray &dy = call.inputs[0], &x = call.inputs[1];
        const Options options = options_of(call.attrs, x.shape);
        call.outputs.resize(3);
        HostArray& dx = make_array(call.outputs, 0, x.shape, x.dtype);
        HostArray& weight =
            make_array(call.outputs, 1, Shape{options.channels}, call.inputs.back().dtype);
        HostArray& bias = make_array(call.outputs, 2, weight.shape, weight.dtype);
        const auto columns = static_cast<std::size_t>(options.matrix[1]),
                   plane = static_cast<std::size_t>(options.blocks[3]);
        const auto groups = static_cast<std::size_t>(options.groups),
                   depth = static_cast<std::size_t>(options.blocks[2]);
        for (std::size_t row = 0; row < static_cast<std::size_t>(options.matrix[0]); ++row) {
            const double mean = call.inputs[2].data[row], rstd = call.inputs[3].data[row];
            const auto channel = [&](std::size_t k) { return row % groups * depth + k / plane; };
            const auto normal = [&](std::size_t k) {
                return (x.data[row * columns + k] - mean) * rstd;
            };
            const auto flow = [&](std::size_t k) {
                return dy.data[row * columns + k] *
                       (call.inputs.size() == 5 ? call.inputs[4].data[channel(k)] : 1);
            };
            double sum = 0, with_x = 0;
            for (std::size_t k = 0; k < columns; ++k) {
                sum += flow(k);
                with_x += flow(k) * normal(k);
                weight.data[channel(k)] += dy.data[row * columns + k] * normal(k);
                bias.data[channel(k)] += dy.data[row * columns + k];
            }
            const auto count = static_cast<double>(columns);
            for (std::size_t k = 0; k < columns; ++k)
                dx.data[row * columns + k] =
                    (flow(k) - sum / count - normal(k) * with_x / count) * rstd;
        }
    }

  private:
    /// Those of GroupNorm that shapes depend on.
    static Options options_of(const Attrs& attrs, const Shape& x) {
        Attrs all = attrs;
        all.set("eps", 0.0).set("affine", false).set("num_channels", std::int64_t{-1});
        return Options(all, x);
    }
};

}  // namespace

std::unique_ptr<Operator> make_backward() {
    return std::make_unique<GroupNormBackward>();
}

}  // namespace dlprim::groupnorm
