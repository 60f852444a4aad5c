// SPDX-License-Identifier: MIT
// Squeeze: drops dimensions of size 1 and keeps the memory. dims lists dimensions; those of another
// size stay, as in torch.squeeze. With `all`, or without dims, every dimension of size 1 is
// dropped.
#include "graph/operator.hpp"
#include "base/text.hpp"

#include <vector>

namespace dlprim {

namespace {

Shape squeezed(const Attrs& attrs, const Shape& input) {
    const Ints dims = attrs.ints("dims");
    std::vector<bool> drop(static_cast<std::size_t>(input.rank()),
                           attrs.boolean("all") || dims.empty());
    for (const std::int64_t d : dims) {
        require(d >= -input.rank() && d < input.rank(), "dims has ", d, ", which input ",
                input.str(), " does not have");
        drop[static_cast<std::size_t>(d < 0 ? d + input.rank() : d)] = true;
    }
    Ints sizes;
    for (int d = 0; d < input.rank(); ++d)
        if (!drop[static_cast<std::size_t>(d)] || input[d] != 1) sizes.push_back(input[d]);
    return Shape(sizes);
}

class Squeeze : public Operator {
  public:
    std::string_view type() const override { return "Squeeze"; }
    FloatTypes float_types(const Attrs&) const override { return FloatTypes::all; }
    const Schema& schema() const override {
        static const Schema schema{
            {"dims", OptionKind::integers, Ints{}, "dimensions to drop where their size is 1"},
            {"all", OptionKind::boolean, false, "drop every dimension of size 1; so does no dims"}};
        return schema;
    }
    std::vector<TensorSpec> infer(const Attrs& attrs,
                                  std::span<const TensorSpec> inputs) const override {
        return {{squeezed(attrs, inputs[0].shape), inputs[0].dtype}};
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
        call.outputs[0].shape = squeezed(call.attrs, call.inputs[0].shape);
    }
    void oracle_backward(OracleBackwardCall& call) const override {
        call.input_gradients[0] = call.output_gradients[0];
        call.input_gradients[0].shape = call.inputs[0].shape;
    }
};

}  // namespace

void register_squeeze() {
    OperatorRegistry::instance().add(std::make_unique<Squeeze>());
}

}  // namespace dlprim
