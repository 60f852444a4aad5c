// SPDX-License-Identifier: MIT
// SoftmaxBackward: the gradient of Softmax from its result, for programs that keep that themselves.
#include "graph/oracle_loops.hpp"
#include "ops/softmax/operator.hpp"

#include <cmath>

namespace dlprim::softmax {

namespace {

/// Inputs: dy and Softmax's result y. Output: dx.
class SoftmaxBackward final : public Softmax {
  public:
    std::string_view type() const override { return ops::SoftmaxBackward::type; }
    const Schema& schema() const override { return schema_of<ops::SoftmaxBackward>(); }
    int min_inputs() const override { return 2; }
    int max_inputs() const override { return 2; }
    std::vector<TensorSpec> infer(const Attrs& attrs,
                                  std::span<const TensorSpec> inputs) const override {
        require(inputs[0].shape == inputs[1].shape, "dy has shape ", inputs[0].shape.str(),
                ", the result has ", inputs[1].shape.str());
        return Softmax::infer(attrs, inputs);
    }
    bool expand(Graph& graph, const Node& node, std::vector<ValueId>& outputs) const override {
        const ValueId y = node.inputs[1];
        outputs = {gradient_from_output(graph, node.name, Options(node.attrs, graph.shape(y)),
                                        node.inputs[0], y)};
        return true;
    }
    void oracle(OracleCall& call) const override {
        const HostArray &dy = call.inputs[0], &y = call.inputs[1];
        const Options options(call.attrs, y.shape);
        HostArray& dx = make_array(call.outputs, 0, y.shape, dy.dtype);
        const AxisView view(y.shape, options.axis);
        for (std::size_t o = 0; o < view.outer; ++o) {
            for (std::size_t i = 0; i < view.inner; ++i) {
                double sum = 0;
                for (std::size_t k = 0; k < view.size; ++k) {
                    const std::size_t at = view.at(o, k, i);
                    sum += options.log ? dy.data[at] : dy.data[at] * y.data[at];
                }
                for (std::size_t k = 0; k < view.size; ++k) {
                    const std::size_t at = view.at(o, k, i);
                    dx.data[at] = options.log ? dy.data[at] - std::exp(y.data[at]) * sum
                                              : y.data[at] * (dy.data[at] - sum);
                }
            }
        }
    }
    void oracle_backward(OracleBackwardCall& call) const override {
        Operator::oracle_backward(call);
    }
};

}  // namespace

std::unique_ptr<Operator> make_backward() {
    return std::make_unique<SoftmaxBackward>();
}

}  // namespace dlprim::softmax
