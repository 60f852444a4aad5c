// SPDX-License-Identifier: MIT
// Reduction: the sum, sum of squares, sum of absolute values or mean over some dimensions, times a
// factor. It is lowered to Pointwise.
#include "graph/declared_operator.hpp"
#include "graph/lowering.hpp"
#include "graph/oracle_loops.hpp"
#include "ops/reduction/options.hpp"

#include <cmath>

namespace dlprim::reduction {

namespace {

class Reduction : public DeclaredOperator<ops::Reduction> {
  public:
    FloatTypes float_types(const Attrs&) const override { return FloatTypes::wide; }
    std::vector<TensorSpec> infer(const Attrs& attrs,
                                  std::span<const TensorSpec> inputs) const override {
        require(is_float(inputs[0].dtype), "input has dtype ", name_of(inputs[0].dtype),
                ", a float type is needed");
        return {{Options(attrs, inputs[0].shape).output, inputs[0].dtype}};
    }
    void gradient(GradientContext& context) const override {
        Graph& graph = context.graph;
        const Node& node = context.node;
        const ValueId x = node.inputs[0];
        const Shape shape = graph.shape(x);
        const Options options(node.attrs, shape);
        const std::string at = node.name + "/backward";
        const ValueId dy = graph.reshape(at + "/dy", context.output_gradients[0], options.kept);
        ValueId& dx = context.input_gradients[0];
        switch (options.method) {
            case Method::sum:
            case Method::mean:
                dx = pointwise_over(graph, at, "y0 = x0 * p0", {dy}, {options.scale}, shape)[0];
                break;
            case Method::sumsq:
                dx = graph.pointwise1(at, "y0 = x0 * x1 * p0", {dy, x}, {2 * options.scale});
                break;
            case Method::abssum:
                dx = graph.pointwise1(at, "y0 = x0 * sign(x1) * p0", {dy, x}, {options.scale});
                break;
        }
    }
    bool lower(Graph& graph, const Node& node, std::vector<ValueId>& outputs) const override {
        const Options options(node.attrs, graph.shape(node.inputs[0]));
        std::string each;
        switch (options.method) {
            case Method::sum:
            case Method::mean:
                each = "x0";
                break;
            case Method::sumsq:
                each = "x0 * x0";
                break;
            case Method::abssum:
                each = "abs(x0)";
                break;
        }
        // The factor is applied after the sum, so that small factors cost no accuracy.
        ValueId y = node.inputs[0];
        const std::string at = node.name + "/sum";
        if (options.axes.empty()) {
            outputs = {
                graph.pointwise1(node.name, "y0 = (" + each + ") * p0", {y}, {options.scale})};
            return true;
        }
        y = graph.pointwise1(node.name, cat("y0 = sum", axes_text(options.axes), "(", each, ")"),
                             {y});
        y = graph.reshape(at, y, options.output);
        if (options.scale != 1)
            y = graph.pointwise1(node.name + "/scale", "y0 = x0 * p0", {y}, {options.scale});
        outputs = {y};
        return true;
    }
    void oracle(OracleCall& call) const override {
        const HostArray& x = call.inputs[0];
        const Options options(call.attrs, x.shape);
        HostArray& y = make_array(call.outputs, 0, options.output, x.dtype);
        for_each_position(x.shape, [&](const auto& index, std::size_t i) {
            const double v = x.data[i];
            double& sum = y.data[broadcast_offset(options.kept, index)];
            switch (options.method) {
                case Method::sum:
                case Method::mean:
                    sum += v;
                    break;
                case Method::sumsq:
                    sum += v * v;
                    break;
                case Method::abssum:
                    sum += std::fabs(v);
                    break;
            }
        });
        for (double& value : y.data) value *= options.scale;
    }
    void oracle_backward(OracleBackwardCall& call) const override {
        const HostArray& x = call.inputs[0];
        const HostArray& dy = call.output_gradients[0];
        const Options options(call.attrs, x.shape);
        HostArray& dx = make_array(call.input_gradients, 0, x.shape, x.dtype);
        for_each_position(x.shape, [&](const auto& index, std::size_t i) {
            const double v = x.data[i];
            double slope = 1;
            if (options.method == Method::sumsq) slope = 2 * v;
            if (options.method == Method::abssum) slope = v > 0 ? 1 : v < 0 ? -1 : 0;
            dx.data[i] = dy.data[broadcast_offset(options.kept, index)] * options.scale * slope;
        });
    }
};

}  // namespace

void register_reduction(OperatorRegistry& operators, EngineRegistry&) {
    operators.add(std::make_unique<Reduction>());
}

}  // namespace dlprim::reduction
