// SPDX-License-Identifier: MIT
// Reshape: the same elements in the same order, with another shape.
#include "graph/operator.hpp"
#include "base/text.hpp"
#include "ops/reshape/options.hpp"

namespace dlprim {

namespace reshape {

Shape output_shape(const Attrs& attrs, const Shape& input) {
    const Ints dims = attrs.ints("dims");
    require(dims.size() <= static_cast<std::size_t>(Shape::max_rank), "dims has ", dims.size(),
            " entries, at most ", Shape::max_rank, " are possible");
    Ints sizes;
    std::ptrdiff_t deduced = -1;
    std::int64_t known = 1;
    for (std::size_t d = 0; d < dims.size(); ++d) {
        std::int64_t size = dims[d];
        require(size >= -1, "dims has ", size,
                "; a size is positive, 0 (keeps the input's) or -1 (deduced)");
        if (size == 0) {
            require(static_cast<int>(d) < input.rank(), "dims keeps dimension ", d,
                    " with 0, which input ", input.str(), " does not have");
            size = input[static_cast<int>(d)];
        }
        if (size == -1) {
            require(deduced < 0, "dims has more than one -1; only one size can be deduced");
            deduced = static_cast<std::ptrdiff_t>(d);
        } else {
            known = Shape{known, size}.numel();
        }
        sizes.push_back(size);
    }
    if (deduced >= 0) {
        const auto at = static_cast<std::size_t>(deduced);
        sizes[at] = 1;
        require(known > 0 && input.numel() % known == 0, "dims ", Shape(sizes).str(), " with size ",
                at, " to deduce does not divide the ", input.numel(), " elements of input ",
                input.str());
        sizes[at] = input.numel() / known;
    }
    const Shape shape(sizes);
    require(shape.numel() == input.numel(), "input ", input.str(), " has ", input.numel(),
            " elements, shape ", shape.str(), " needs ", shape.numel());
    return shape;
}

}  // namespace reshape

namespace {

class Reshape : public Operator {
  public:
    std::string_view type() const override { return "Reshape"; }
    FloatTypes float_types(const Attrs&) const override { return FloatTypes::all; }
    const Schema& schema() const override {
        static const Schema schema{{"dims", OptionKind::integers, Ints{},
                                    "the output's sizes; 0 keeps the input's, one -1 is deduced",
                                    true}};
        return schema;
    }
    std::vector<TensorSpec> infer(const Attrs& attrs,
                                  std::span<const TensorSpec> inputs) const override {
        return {{reshape::output_shape(attrs, inputs[0].shape), inputs[0].dtype}};
    }
    bool differentiable() const override { return true; }
    void gradient(GradientContext& context) const override {
        const ValueId dy = context.output_gradients[0];
        if (dy == no_value || !context.wanted[0]) return;
        context.input_gradients[0] = context.graph.reshape(
            context.node.name + "/backward", dy, context.graph.shape(context.node.inputs[0]));
    }
    bool is_view() const override { return true; }
    void oracle(OracleCall& call) const override {
        call.outputs[0] = call.inputs[0];
        call.outputs[0].shape = reshape::output_shape(call.attrs, call.inputs[0].shape);
    }
    void oracle_backward(OracleBackwardCall& call) const override {
        call.input_gradients[0] = call.output_gradients[0];
        call.input_gradients[0].shape = call.inputs[0].shape;
    }
};

}  // namespace

void register_reshape() {
    OperatorRegistry::instance().add(std::make_unique<Reshape>());
}

}  // namespace dlprim
