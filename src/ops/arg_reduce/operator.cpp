// SPDX-License-Identifier: MIT
// ArgReduce as an operator: options, shapes, gradient.
#include "ops/arg_reduce/operator.hpp"

#include "base/text.hpp"
#include "engine/element.hpp"
#include "graph/declared_operator.hpp"
#include "ops/arg_reduce/options.hpp"

namespace dlprim::arg_reduce {

namespace {

class ArgReduce : public DeclaredOperator<ops::ArgReduce> {
  public:
    FloatTypes float_types(const Attrs&) const override { return FloatTypes::all; }
    int outputs(const Attrs& attrs) const override { return attrs.boolean("values") ? 2 : 1; }
    std::vector<TensorSpec> infer(const Attrs& attrs,
                                  std::span<const TensorSpec> inputs) const override {
        require_comparable(inputs[0].dtype);
        const Options options(attrs, inputs[0].shape);
        std::vector<TensorSpec> made{{options.result, DType::i64}};
        if (options.values) made.insert(made.begin(), {options.result, inputs[0].dtype});
        return made;
    }

    /// The gradient goes to the element that was taken: a Scatter along the dimension.
    void gradient(GradientContext& context) const override {
        const Node& node = context.node;
        const ValueId dy = context.output_gradients[0];
        Graph& graph = context.graph;
        const Shape x = graph.shape(node.inputs[0]);
        if (x.empty()) {
            context.input_gradients[0] = graph.add1(
                "Pointwise", node.name + "/backward", {},
                {{"code", std::string("y0 = 0")},
                 {"shape", Ints(x.to_vector())},
                 {"dtypes", Strings{std::string(name_of(graph.spec(node.inputs[0]).dtype))}}});
            return;
        }
        const Options options(node.attrs, x);
        const bool is_flat = options.dim < 0 || x.rank() == 0;
        const std::int64_t dim = is_flat ? 0 : options.dim;
        const Ints sizes = is_flat ? Ints{x.numel()} : x.to_vector();
        Ints one = sizes;
        one[static_cast<std::size_t>(dim)] = 1;
        const auto reshaped = [&](std::string_view name, ValueId value, const Ints& dims) {
            return graph.add1("Reshape", cat(node.name, "/backward/", name), {value},
                              {{"dims", dims}});
        };
        const ValueId dx =
            graph.add1("Scatter", node.name + "/backward",
                       {reshaped("positions", node.outputs[1], one), reshaped("dy", dy, one)},
                       {{"mode", std::string("elements")}, {"dim", dim}, {"shape", sizes}});
        context.input_gradients[0] = is_flat ? reshaped("dx", dx, x.to_vector()) : dx;
    }

    void oracle(OracleCall& call) const override { arg_reduce::oracle(call); }
    void oracle_backward(OracleBackwardCall& call) const override {
        arg_reduce::oracle_backward(call);
    }
};

}  // namespace

void register_arg_reduce(OperatorRegistry& operators, EngineRegistry& engines) {
    operators.add(std::make_unique<ArgReduce>());
    add_host_engine(engines);
    add_reference_engine(engines);
}

}  // namespace dlprim::arg_reduce
