// SPDX-License-Identifier: MIT
// Parameter: an operator without inputs whose single parameter is its output. It is a composite
// that disappears: readers of the output read the parameter instead.
#include "base/text.hpp"
#include "graph/declared_operator.hpp"

namespace dlprim::parameter {

namespace {

class Parameter : public DeclaredOperator<ops::Parameter> {
  public:
    FloatTypes float_types(const Attrs&) const override { return FloatTypes::all; }
    int min_inputs() const override { return 0; }
    int max_inputs() const override { return 0; }
    std::vector<ParamSpec> params(const Attrs& attrs, std::span<const TensorSpec>) const override {
        const Shape shape(attrs.ints("shape"));
        require(!shape.empty(), "shape ", shape, " has a dimension of 0; sizes are at least 1");
        const DType dtype = parse_dtype(attrs.text("dtype"));
        return {{{shape, dtype},
                 Init::constant(attrs.number("value")),
                 attrs.boolean("is_trainable") && is_float(dtype)}};
    }
    std::vector<TensorSpec> infer(const Attrs&, std::span<const TensorSpec> inputs) const override {
        require(inputs.size() == 1, "needs its one parameter, got ", inputs.size(), " tensors");
        return {inputs[0]};
    }
    bool expand(Graph&, const Node& node, std::vector<ValueId>& outputs) const override {
        outputs = node.inputs;
        return true;
    }
    void oracle(OracleCall& call) const override { call.outputs[0] = call.inputs[0]; }
    void oracle_backward(OracleBackwardCall& call) const override {
        if (!call.attrs.boolean("is_trainable")) return;
        call.input_gradients[0] = call.output_gradients[0];
    }
};

}  // namespace

void register_parameter(OperatorRegistry& operators, EngineRegistry&) {
    operators.add(std::make_unique<Parameter>());
}

}  // namespace dlprim::parameter
