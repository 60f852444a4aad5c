// SPDX-License-Identifier: MIT
// Pooling2D: the maximum or mean of windows. For the gradient of a maximum, the forward pass also
// stores the position of each maximum in its window, usually in one byte.
#include "ops/pooling2d/operator.hpp"

#include "base/text.hpp"
#include "graph/declared_operator.hpp"

namespace dlprim::pooling2d {

namespace {

struct BackwardOptions : WithSizes<ops::Pooling2D> {
    static constexpr std::string_view type = "Pooling2DBackward";
};

/// dy and, for max, the positions -> dx. The size of x is an option, so that x need not be kept.
class Pooling2DBackward : public InternalOperator<BackwardOptions> {
  public:
    int max_inputs() const override { return 2; }
    std::vector<TensorSpec> infer(const Attrs& attrs,
                                  std::span<const TensorSpec> inputs) const override {
        return {{Shape(attrs.ints("sizes")), inputs[0].dtype}};
    }
};

}  // namespace

std::vector<TensorSpec> Pooling2D::infer(const Attrs& attrs,
                                         std::span<const TensorSpec> inputs) const {
    const Options options(attrs);
    const Shape y = options.output_shape(inputs[0].shape);
    std::vector<TensorSpec> result{{y, inputs[0].dtype}};
    if (options.return_indices) result.push_back({y, options.index_type()});
    return result;
}

bool Pooling2D::expand(Graph& graph, const Node& given, std::vector<ValueId>& outputs) const {
    // The engines of doubles are PoolingND's.
    if (graph.spec(given.inputs[0]).dtype != DType::f64) return false;
    const Node node = given;
    const Options options(node.attrs);
    if (options.return_indices)
        fail(ErrorKind::unsupported,
             "return_indices does not go with double tensors; PoolingND has positions for them");
    const Attrs attrs{{"mode", node.attrs.text("mode")},
                      {"kernel", Ints(options.kernel.begin(), options.kernel.end())},
                      {"stride", Ints(options.stride.begin(), options.stride.end())},
                      {"pad", Ints(options.pad.begin(), options.pad.end())},
                      {"count_include_pad", options.count_include_pad},
                      {"ceil_mode", options.ceil_mode}};
    outputs = graph.add("PoolingND", node.name, {node.inputs[0]}, attrs);
    return true;
}

void Pooling2D::gradient(GradientContext& context) const {
    const ValueId dy = context.output_gradients[0];
    if (dy == no_value || !context.wanted[0]) return;
    Graph& graph = context.graph;
    const Options options(context.node.attrs);
    std::vector<ValueId> inputs{dy};
    if (!options.average) {
        // The forward node gets its second output only here, where it is needed.
        const NodeId id = graph.value(context.node.outputs[0]).producer;
        if (!options.return_indices) {
            Value index;
            index.name = context.node.name + ":1";
            index.spec = {graph.shape(context.node.outputs[0]), options.index_type()};
            index.producer = id;
            const ValueId added = graph.add_value(std::move(index));
            Node& node = graph.nodes[static_cast<std::size_t>(id)];
            node.attrs.set("return_indices", true);
            node.outputs.push_back(added);
        }
        inputs.push_back(graph.nodes[static_cast<std::size_t>(id)].outputs[1]);
    }
    Attrs attrs = context.node.attrs;
    attrs.set("sizes", graph.shape(context.node.inputs[0]).to_vector());
    context.input_gradients[0] =
        graph.add1("Pooling2DBackward", context.node.name + "/backward", inputs, attrs);
}

std::unique_ptr<Operator> make_operator() {
    return std::make_unique<Pooling2D>();
}

std::unique_ptr<Operator> make_backward() {
    return std::make_unique<Pooling2DBackward>();
}

}  // namespace dlprim::pooling2d
