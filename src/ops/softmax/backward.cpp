// SPDX-License-Identifier: MIT
// SoftmaxBackward: the gradient of Softmax from its result, for programs that keep that themselves.
#include "graph/oracle_loops.hpp"
#include "ops/softmax/operator.hpp"

namespace dlprim::softmax {

namespace {

/// Inputs: dy and Softmax's result y. Output: dx.
class SoftmaxBackward final : public Softmax {
  public:
    std::string_view type() const override { return ops::SoftmaxBackward::type; }
    const Schema& schema() const override { return schema_of<ops::SoftmaxBackward>(); }
    int min_inputs() const override { return 2; }
    std::vector<TensorSpec> infer(const Attrs& attrs,
                                  std::span<const TensorSpec> inputs) const override {
        require(inputs[0].shape == inputs[1].shape, "dy has shape ", inputs[0].shape,
                ", the result has ", inputs[1].shape);
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
        oracle_from_output(Options(call.attrs, y.shape), y, dy,
                           make_array(call.outputs, 0, y.shape, dy.dtype), nullptr);
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
