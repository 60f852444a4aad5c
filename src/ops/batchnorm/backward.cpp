// SPDX-License-Identifier: MIT
// BatchNormBackward: the gradients of BatchNorm from the statistics that its forward call returned.
#include "graph/declared_operator.hpp"
#include "graph/lowering.hpp"
#include "graph/oracle_loops.hpp"
#include "ops/batchnorm/operator.hpp"

namespace dlprim::batchnorm {

namespace {

/// Inputs: dy, x, the mean and r = 1 / sqrt(variance + eps) of each channel, and the scale where
/// there is one. Outputs: the gradients of x, of the scale and of the offset.
class BatchNormBackward final : public DeclaredOperator<ops::BatchNormBackward> {
  public:
    FloatTypes float_types(const Attrs&) const override { return FloatTypes::wide; }
    int min_inputs() const override { return 4; }
    int max_inputs() const override { return 5; }
    int outputs(const Attrs&) const override { return 3; }

    std::vector<TensorSpec> infer(const Attrs&, std::span<const TensorSpec> inputs) const override {
        const Shape& x = inputs[1].shape;
        require(x.rank() >= 2, "input of shape ", x, " has no channels: [N, C, ...] is needed");
        require(inputs[0].shape == x, "dy has shape ", inputs[0].shape, ", x has ", x);
        for (std::size_t i = 2; i < inputs.size(); ++i)
            require(inputs[i].shape == Shape{x[1]}, "operand ", i, " has shape ", inputs[i].shape,
                    ", the input of shape ", x, " needs ", Shape{x[1]});
        const TensorSpec channel{Shape{x[1]}, inputs.back().dtype};
        return {inputs[1], channel, channel};
    }

    bool expand(Graph& graph, const Node& node, std::vector<ValueId>& outputs) const override {
        const Shape shape = graph.shape(node.inputs[1]);
        const Shape per_channel = channel_shape(shape[1], shape.rank());
        const std::string over = axes_text(axes_but(shape.rank(), 1));
        std::vector<ValueId> inputs{node.inputs[0], node.inputs[1]};
        for (std::size_t i = 2; i < node.inputs.size(); ++i)
            inputs.push_back(graph.reshape(node.name + "/channel", node.inputs[i], per_channel));
        const bool scaled = inputs.size() == 5;
        const auto sums =
            graph.pointwise(node.name + "/sums",
                            "y0 = sum" + over + "(x0 * (x1 - x2) * x3); y1 = sum" + over + "(x0)",
                            {inputs[0], inputs[1], inputs[2], inputs[3]});
        outputs.clear();
        if (!graph.training || node.attrs.boolean("use_global_stats")) {
            inputs.erase(inputs.begin() + 1, inputs.begin() + 3);
            outputs.push_back(graph.pointwise1(
                node.name, scaled ? "y0 = x0 * (x1 * x2)" : "y0 = x0 * x1", inputs));
        } else {
            // As in BatchNormTraining: what is subtracted from dy is added up first.
            const double count = static_cast<double>(shape.numel()) / static_cast<double>(shape[1]);
            std::string code =
                scaled ? "f = x3 * x4; with = x5; alone = x6; " : "f = x3; with = x4; alone = x5; ";
            code += "y0 = (x0 - (alone * p0 + (x1 - x2) * (x3 * with * p0))) * f";
            for (const ValueId sum : sums)
                inputs.push_back(graph.reshape(node.name + "/sum", sum, per_channel));
            outputs.push_back(graph.pointwise1(node.name, code, inputs, {1 / count}));
        }
        outputs.insert(outputs.end(), sums.begin(), sums.end());
        outputs = as_outputs(graph, node, outputs);
        return true;
    }

    void oracle(OracleCall& call) const override {
        const HostArray &dy = call.inputs[0], &x = call.inputs[1];
        const bool batch = call.training && !call.attrs.boolean("use_global_stats");
        const AxisView view(x.shape, 1);
        const auto count = static_cast<double>(view.outer * view.inner);
        call.outputs.resize(3);
        HostArray& dx = make_array(call.outputs, 0, x.shape, x.dtype);
        HostArray& scale =
            make_array(call.outputs, 1, call.inputs[2].shape, call.inputs.back().dtype);
        HostArray& offset = make_array(call.outputs, 2, scale.shape, scale.dtype);
        for (std::size_t c = 0; c < view.size; ++c) {
            const double mean = call.inputs[2].data[c], r = call.inputs[3].data[c];
            const auto each = [&](auto&& visit) {
                for (std::size_t o = 0; o < view.outer; ++o)
                    for (std::size_t i = 0; i < view.inner; ++i) visit(view.at(o, c, i));
            };
            each([&](std::size_t at) {
                scale.data[c] += dy.data[at] * (x.data[at] - mean) * r;
                offset.data[c] += dy.data[at];
            });
            const double factor = r * (call.inputs.size() == 5 ? call.inputs[4].data[c] : 1);
            each([&](std::size_t at) {
                const double drift =
                    offset.data[c] / count + (x.data[at] - mean) * r * scale.data[c] / count;
                dx.data[at] = (dy.data[at] - (batch ? drift : 0)) * factor;
            });
        }
    }
};

}  // namespace

std::unique_ptr<Operator> make_backward() {
    return std::make_unique<BatchNormBackward>();
}

}  // namespace dlprim::batchnorm
