// SPDX-License-Identifier: MIT
// Resize and its gradient as operators: options, shapes, gradient rule.
#include "ops/resize/operators.hpp"

#include "base/text.hpp"
#include "ops/resize/axis.hpp"

namespace dlprim::resize {

namespace {

const OptionSpec method{"method", OptionKind::text, std::string("nearest"),
                        "nearest, nearest-exact, linear or cubic"};
const OptionSpec output{"output", OptionKind::integers, Ints{},
                        "sizes of the result: one, or one for each dimension of images"};
const OptionSpec scales{"scales", OptionKind::numbers, Doubles{},
                        "output size over input size, likewise; without output, sizes round down"};
const OptionSpec align_corners{"align_corners", OptionKind::boolean, false,
                               "linear, cubic: corner elements fall on corner elements"};
const OptionSpec antialias{"antialias", OptionKind::boolean, false,
                           "linear, cubic: a filter as wide as the step where images shrink"};
const OptionSpec image_shape{"sizes", OptionKind::integers, Ints{}, "the shape of Resize's input",
                             true};

class Forward : public Operator {
  public:
    std::string_view type() const override { return forward_type; }
    FloatTypes float_types(const Attrs&) const override { return FloatTypes::all; }
    const Schema& schema() const override {
        static const Schema schema{method, output, scales, align_corners, antialias};
        return schema;
    }
    std::vector<TensorSpec> infer(const Attrs& attrs,
                                  std::span<const TensorSpec> inputs) const override {
        require(is_float(inputs[0].dtype), "input must be of a float type, got ",
                name_of(inputs[0].dtype));
        return {{Options(attrs).output_shape(inputs[0].shape), inputs[0].dtype}};
    }
    bool differentiable() const override { return true; }
    void gradient(GradientContext& context) const override {
        const ValueId dy = context.output_gradients[0];
        if (dy == no_value || !context.wanted[0]) return;
        Attrs attrs = context.node.attrs;
        attrs.set("sizes", context.graph.shape(context.node.inputs[0]).to_vector());
        context.input_gradients[0] =
            context.graph.add1(backward_type, context.node.name + "/backward", {dy}, attrs);
    }
    void oracle(OracleCall& call) const override { resize::oracle(call); }
    void oracle_backward(OracleBackwardCall& call) const override { resize::oracle_backward(call); }
};

/// dy -> dx.
class Backward : public Operator {
  public:
    std::string_view type() const override { return backward_type; }
    bool internal() const override { return true; }
    FloatTypes float_types(const Attrs&) const override { return FloatTypes::all; }
    const Schema& schema() const override {
        static const Schema schema{method, output, scales, align_corners, antialias, image_shape};
        return schema;
    }
    std::vector<TensorSpec> infer(const Attrs& attrs,
                                  std::span<const TensorSpec> inputs) const override {
        return {{Shape(attrs.ints("sizes")), inputs[0].dtype}};
    }
};

}  // namespace

std::unique_ptr<Operator> make_forward() {
    return std::make_unique<Forward>();
}
std::unique_ptr<Operator> make_backward() {
    return std::make_unique<Backward>();
}

}  // namespace dlprim::resize
