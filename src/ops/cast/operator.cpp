// SPDX-License-Identifier: MIT
// Cast: option, shape rule, and gradient (a cast back, between float types).
#include "ops/cast/operator.hpp"

#include "base/text.hpp"

namespace dlprim::cast {

std::vector<TensorSpec> Cast::infer(const Attrs& attrs, std::span<const TensorSpec> inputs) const {
    const DType from = inputs[0].dtype, to = parse_dtype(attrs.text("dtype"));
    require(!attrs.boolean("reinterpret") || size_of(from) == size_of(to), "elements of ",
            name_of(from), " have ", size_of(from), " bytes, those of ", name_of(to), " have ",
            size_of(to), "; reinterpret needs types of the same size");
    return {{inputs[0].shape, to}};
}

void Cast::gradient(GradientContext& context) const {
    Graph& graph = context.graph;
    const ValueId dy = context.output_gradients[0];
    const DType from = graph.spec(context.node.inputs[0]).dtype;
    if (dy == no_value || context.node.attrs.boolean("reinterpret") || !is_float(from) ||
        !is_float(graph.spec(dy).dtype))
        return;
    context.input_gradients[0] = graph.add1("Cast", context.node.name + "/backward", {dy},
                                            Attrs{{"dtype", std::string(name_of(from))}});
}

bool Cast::lower(Graph& graph, const Node& node, std::vector<ValueId>& outputs) const {
    if (graph.spec(node.inputs[0]) != graph.spec(node.outputs[0])) return false;
    outputs = {node.inputs[0]};  // nothing to do
    return true;
}

}  // namespace dlprim::cast

namespace dlprim {

void register_cast(OperatorRegistry& operators, EngineRegistry& engines) {
    operators.add(std::make_unique<cast::Cast>());
    cast::add_convert_engine(engines);
    cast::add_narrow_engine(engines);
    cast::add_host_engine(engines);
}

}  // namespace dlprim
