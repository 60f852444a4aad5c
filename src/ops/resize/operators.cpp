// SPDX-License-Identifier: MIT
// Resize and its gradient as operators: options, shapes, gradient rule.
#include "ops/resize/operators.hpp"

#include "base/text.hpp"
#include "graph/declared_operator.hpp"
#include "ops/resize/axis.hpp"
#include "ops/resize/engines.hpp"

namespace dlprim::resize {

namespace {

struct BackwardOptions : WithSizes<ops::Resize> {
    static constexpr std::string_view type = backward_type;
};

class Forward : public DeclaredOperator<ops::Resize> {
  public:
    FloatTypes float_types(const Attrs&) const override { return FloatTypes::all; }
    std::vector<TensorSpec> infer(const Attrs& attrs,
                                  std::span<const TensorSpec> inputs) const override {
        require(is_float(inputs[0].dtype), "input must be of a float type, got ",
                name_of(inputs[0].dtype));
        return {{Options(attrs).output_shape(inputs[0].shape), inputs[0].dtype}};
    }
    void gradient(GradientContext& context) const override {
        const ValueId dy = context.output_gradients[0];
        Attrs attrs = context.node.attrs;
        attrs.set("sizes", context.graph.shape(context.node.inputs[0]).to_vector());
        context.input_gradients[0] =
            context.graph.add1(backward_type, context.node.name + "/backward", {dy}, attrs);
    }
    void oracle(OracleCall& call) const override { resize::oracle(call); }
    void oracle_backward(OracleBackwardCall& call) const override { resize::oracle_backward(call); }
};

/// dy -> dx.
class Backward : public InternalOperator<BackwardOptions> {
  public:
    FloatTypes float_types(const Attrs&) const override { return FloatTypes::all; }
    std::vector<TensorSpec> infer(const Attrs& attrs,
                                  std::span<const TensorSpec> inputs) const override {
        return {{Shape(attrs.ints("sizes")), inputs[0].dtype}};
    }
};

}  // namespace

void register_resize(OperatorRegistry& operators, EngineRegistry& engines) {
    operators.add(std::make_unique<Forward>());
    operators.add(std::make_unique<Backward>());
    add_host_engines(engines);
    add_reference_engines(engines);
}

}  // namespace dlprim::resize
