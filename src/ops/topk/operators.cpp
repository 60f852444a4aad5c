// SPDX-License-Identifier: MIT
// TopK and Sort as operators: options, shapes, gradient, oracles.
#include "ops/topk/operators.hpp"

#include "base/text.hpp"
#include "engine/lines.hpp"
#include "graph/declared_operator.hpp"
#include "ops/topk/lines.hpp"

namespace dlprim::topk {

namespace {

void check_type(DType dtype) {
    require(!is_narrow(dtype), "elements of ", name_of(dtype), " have no order here; cast them");
}

class TopK : public DeclaredOperator<ops::TopK> {
  public:
    FloatTypes float_types(const Attrs&) const override { return FloatTypes::all; }
    int outputs(const Attrs&) const override { return 2; }
    std::vector<TensorSpec> infer(const Attrs& attrs,
                                  std::span<const TensorSpec> inputs) const override {
        check_type(inputs[0].dtype);
        const Lines lines(attrs, inputs[0].shape);
        return {{lines.result, inputs[0].dtype}, {lines.result, DType::i64}};
    }

    void gradient(GradientContext& context) const override {
        const ValueId dy = context.output_gradients[0];
        const Node& node = context.node;
        const Shape& x = context.graph.shape(node.inputs[0]);
        if (x.rank() == 0) {
            context.input_gradients[0] = dy;
            return;
        }
        const Attrs attrs{{"mode", std::string("elements")},
                          {"dim", node.attrs.integer("dim")},
                          {"shape", Ints(x.to_vector())}};
        context.input_gradients[0] =
            context.graph.add1("Scatter", node.name + "/backward", {node.outputs[1], dy}, attrs);
    }

    void oracle(OracleCall& call) const override {
        topk::oracle(call, Lines(call.attrs, call.inputs[0].shape));
    }
    void oracle_backward(OracleBackwardCall& call) const override {
        topk::oracle_backward(call, Lines(call.attrs, call.inputs[0].shape));
    }
};

class Sort : public DeclaredOperator<ops::Sort> {
  public:
    FloatTypes float_types(const Attrs&) const override { return FloatTypes::all; }
    int outputs(const Attrs&) const override { return 2; }
    std::vector<TensorSpec> infer(const Attrs& attrs,
                                  std::span<const TensorSpec> inputs) const override {
        check_type(inputs[0].dtype);
        as_topk(attrs, inputs[0].shape);
        return {inputs[0], {inputs[0].shape, DType::i64}};
    }
    bool expand(Graph& graph, const Node& node, std::vector<ValueId>& outputs) const override {
        const Attrs attrs = as_topk(node.attrs, graph.shape(node.inputs[0]));
        outputs = graph.add(topk::type, node.name, {node.inputs[0]}, attrs);
        return true;
    }
    void oracle(OracleCall& call) const override {
        const Shape& x = call.inputs[0].shape;
        topk::oracle(call, Lines(as_topk(call.attrs, x), x));
    }
    void oracle_backward(OracleBackwardCall& call) const override {
        const Shape& x = call.inputs[0].shape;
        topk::oracle_backward(call, Lines(as_topk(call.attrs, x), x));
    }

  private:
    static Attrs as_topk(const Attrs& attrs, const Shape& x) {
        return {{"k", AxisLines(x, dimension_of(attrs.integer("dim"), x)).length},
                {"dim", attrs.integer("dim")},
                {"largest", attrs.boolean("descending")}};
    }
};

}  // namespace

void register_topk(OperatorRegistry& operators, EngineRegistry& engines) {
    operators.add(std::make_unique<TopK>());
    operators.add(std::make_unique<Sort>());
    add_host_engine(engines);
    add_reference_engine(engines);
}

}  // namespace dlprim::topk
