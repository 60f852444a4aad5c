// SPDX-License-Identifier: MIT
// PoolingND, AdaptivePooling and their gradients as operators: options, shapes, gradient rules. The
// gradient of a maximum needs the positions of maxima, which are the forward node's second output.
#include "ops/pooling_nd/operators.hpp"

#include "base/text.hpp"
#include "graph/declared_operator.hpp"
#include "ops/pooling_nd/windows.hpp"

namespace dlprim::pooling_nd {

namespace {

template <typename Options>
constexpr bool is_adaptive = std::is_same_v<Options, ops::AdaptivePooling>;

template <typename Forward>
struct BackwardOptions : WithSizes<Forward> {
    static constexpr std::string_view type =
        is_adaptive<Forward> ? adaptive_backward_type : pooling_backward_type;
};

template <typename Options>
class Forward : public DeclaredOperator<Options> {
  public:
    FloatTypes float_types(const Attrs&) const override { return FloatTypes::all; }
    int outputs(const Attrs& attrs) const override {
        return attrs.boolean("return_indices") ? 2 : 1;
    }
    std::vector<TensorSpec> infer(const Attrs& attrs,
                                  std::span<const TensorSpec> inputs) const override {
        require(is_float(inputs[0].dtype), "input must be of a float type, got ",
                name_of(inputs[0].dtype));
        const Windows windows(attrs, inputs[0].shape, is_adaptive<Options>);
        std::vector<TensorSpec> result{{windows.output, inputs[0].dtype}};
        if (windows.indices) result.push_back({windows.output, index_type});
        return result;
    }

    bool differentiable() const override { return true; }
    void gradient(GradientContext& context) const override {
        const ValueId dy = context.output_gradients[0];
        if (dy == no_value || !context.wanted[0]) return;
        Graph& graph = context.graph;
        const Node& node = context.node;
        std::vector<ValueId> inputs{dy};
        if (node.attrs.text("mode") == "max") inputs.push_back(positions(graph, node));
        Attrs attrs = node.attrs;
        attrs.set("sizes", graph.shape(node.inputs[0]).to_vector());
        context.input_gradients[0] =
            graph.add1(BackwardOptions<Options>::type, node.name + "/backward", inputs, attrs);
    }

    void oracle(OracleCall& call) const override { pooling_nd::oracle(call, is_adaptive<Options>); }
    void oracle_backward(OracleBackwardCall& call) const override {
        pooling_nd::oracle_backward(call, is_adaptive<Options>);
    }

  private:
    /// The forward node's second output, which it gets here if it had none.
    static ValueId positions(Graph& graph, const Node& node) {
        const NodeId id = graph.value(node.outputs[0]).producer;
        if (!node.attrs.boolean("return_indices")) {
            Value index;
            index.name = node.name + ":1";
            index.spec = {graph.shape(node.outputs[0]), index_type};
            index.producer = id;
            const ValueId added = graph.add_value(std::move(index));
            Node& forward = graph.nodes[static_cast<std::size_t>(id)];
            forward.attrs.set("return_indices", true);
            forward.outputs.push_back(added);
        }
        return graph.nodes[static_cast<std::size_t>(id)].outputs[1];
    }
};

/// dy and, for max, the positions -> dx.
template <typename Forward>
class Backward : public InternalOperator<BackwardOptions<Forward>> {
  public:
    int max_inputs() const override { return 2; }
    FloatTypes float_types(const Attrs&) const override { return FloatTypes::all; }
    std::vector<TensorSpec> infer(const Attrs& attrs,
                                  std::span<const TensorSpec> inputs) const override {
        return {{Shape(attrs.ints("sizes")), inputs[0].dtype}};
    }
};

}  // namespace

std::unique_ptr<Operator> make_pooling() {
    return std::make_unique<Forward<ops::PoolingND>>();
}
std::unique_ptr<Operator> make_adaptive() {
    return std::make_unique<Forward<ops::AdaptivePooling>>();
}
std::unique_ptr<Operator> make_backward(bool adaptive) {
    if (adaptive) return std::make_unique<Backward<ops::AdaptivePooling>>();
    return std::make_unique<Backward<ops::PoolingND>>();
}

}  // namespace dlprim::pooling_nd
