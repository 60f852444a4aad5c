// SPDX-License-Identifier: MIT
// Cast: option, shape rule, and gradient (a cast back, between float types).
#include "ops/cast/operator.hpp"

#include "base/text.hpp"
#include "engine/engine.hpp"
#include "graph/declared_operator.hpp"
#include "graph/defines_edges.hpp"
#include "graph/oracle_loops.hpp"

namespace dlprim::cast {

namespace {

/// The values, converted from type `from` to type `to`, as doubles.
std::vector<double> through(const std::vector<double>& values, DType from, DType to,
                            bool reinterpret = false) {
    const std::size_t count = values.size();
    std::vector<std::byte> first(count * size_of(from)), second(count * size_of(to));
    std::vector<double> result(count);
    convert(values.data(), DType::f64, first.data(), from, count);
    if (reinterpret)
        second = first;
    else
        convert(first.data(), from, second.data(), to, count);
    convert(second.data(), to, result.data(), DType::f64, count);
    return result;
}

class Cast : public DeclaredOperator<ops::Cast>, public DefinesEdges {
  public:
    FloatTypes float_types(const Attrs&) const override { return FloatTypes::all; }
    bool defines_edges(const Attrs&) const override { return true; }
    std::vector<TensorSpec> infer(const Attrs& attrs,
                                  std::span<const TensorSpec> inputs) const override {
        const DType from = inputs[0].dtype, to = parse_dtype(attrs.text("dtype"));
        require(!attrs.boolean("reinterpret") || size_of(from) == size_of(to), "elements of ",
                name_of(from), " have ", size_of(from), " bytes, those of ", name_of(to), " have ",
                size_of(to), "; reinterpret needs types of the same size");
        return {{inputs[0].shape, to}};
    }
    void gradient(GradientContext& context) const override {
        Graph& graph = context.graph;
        const ValueId dy = context.output_gradients[0];
        const DType from = graph.spec(context.node.inputs[0]).dtype;
        if (dy == no_value || context.node.attrs.boolean("reinterpret") || !is_float(from) ||
            !is_float(graph.spec(dy).dtype))
            return;
        context.input_gradients[0] = graph.add1("Cast", context.node.name + "/backward", {dy},
                                                Attrs{{"dtype", std::string(name_of(from))}});
    }
    bool lower(Graph& graph, const Node& node, std::vector<ValueId>& outputs) const override {
        if (graph.spec(node.inputs[0]) != graph.spec(node.outputs[0])) return false;
        outputs = {node.inputs[0]};  // nothing to do
        return true;
    }
    void oracle(OracleCall& call) const override {
        const HostArray& x = call.inputs[0];
        const DType to = parse_dtype(call.attrs.text("dtype"));
        make_array(call.outputs, 0, x.shape, to).data =
            through(x.data, x.dtype, to, call.attrs.boolean("reinterpret"));
    }
    void oracle_backward(OracleBackwardCall& call) const override {
        const HostArray& x = call.inputs[0];
        const DType to = parse_dtype(call.attrs.text("dtype"));
        call.input_gradients.assign(1, {});
        if (!is_float(x.dtype) || !is_float(to) || call.attrs.boolean("reinterpret")) return;
        make_array(call.input_gradients, 0, x.shape, x.dtype).data =
            through(call.output_gradients[0].data, to, x.dtype);
    }
};

}  // namespace

void register_cast(OperatorRegistry& operators, EngineRegistry& engines) {
    operators.add(std::make_unique<Cast>());
    add_generated_engine(engines);
    add_convert_engine(engines);
    add_narrow_engine(engines);
    add_host_engine(engines);
}

}  // namespace dlprim::cast
