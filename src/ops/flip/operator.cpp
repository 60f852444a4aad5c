// SPDX-License-Identifier: MIT
// Flip: options, shape rule, gradient, copy and oracle.
#include "ops/flip/operator.hpp"

#include "base/text.hpp"
#include "engine/lines.hpp"
#include "graph/declared_operator.hpp"
#include "graph/defines_edges.hpp"
#include "graph/oracle_loops.hpp"

namespace dlprim::flip {

namespace {

/// For each dimension whether it is reversed.
std::vector<bool> reversed(const Attrs& attrs, const Shape& x) {
    std::vector<bool> result(static_cast<std::size_t>(std::max(x.rank(), 1)), false);
    for (const std::int64_t given : attrs.ints("dims")) {
        const int dim = dimension_of(given, x);
        require(!result[static_cast<std::size_t>(dim)], "dims names dimension ", dim, " twice");
        result[static_cast<std::size_t>(dim)] = true;
    }
    return result;
}

/// y, with the elements of x in the places where they were not.
void turn(const Attrs& attrs, const HostArray& x, HostArray& y) {
    const std::vector<bool> turned = reversed(attrs, x.shape);
    y = x;
    for_each_position(x.shape, [&](const Ints& at, std::size_t place) {
        std::int64_t from = 0;
        for (int d = 0; d < x.shape.rank(); ++d) {
            const std::int64_t coordinate = at[static_cast<std::size_t>(d)];
            from = from * x.shape[d] +
                   (turned[static_cast<std::size_t>(d)] ? x.shape[d] - 1 - coordinate : coordinate);
        }
        y.data[place] = x.data[static_cast<std::size_t>(from)];
    });
}

class Flip : public DeclaredOperator<ops::Flip>, public DefinesEdges {
  public:
    FloatTypes float_types(const Attrs&) const override { return FloatTypes::all; }
    bool defines_edges(const Attrs&) const override { return true; }
    std::vector<TensorSpec> infer(const Attrs& attrs,
                                  std::span<const TensorSpec> inputs) const override {
        reversed(attrs, inputs[0].shape);
        return {inputs[0]};
    }
    void gradient(GradientContext& context) const override {
        const ValueId dy = context.output_gradients[0];
        const Node& node = context.node;
        context.input_gradients[0] =
            context.graph.add1("Flip", node.name + "/backward", {dy}, node.attrs);
    }
    void oracle(OracleCall& call) const override {
        turn(call.attrs, call.inputs[0], call.outputs[0]);
    }
    void oracle_backward(OracleBackwardCall& call) const override {
        turn(call.attrs, call.output_gradients[0], call.input_gradients[0]);
    }
};

}  // namespace

std::vector<StridedCopy> copies(const Problem& problem) {
    const Shape& x = problem.inputs[0].shape;
    const std::vector<bool> turned = reversed(problem.attrs, x);
    StridedCopy copy;
    copy.sizes = x.to_vector();
    copy.x_strides = memory_strides(problem.inputs[0]);
    copy.y_strides = memory_strides(problem.outputs[0]);
    copy.element_bytes = size_of(problem.outputs[0].dtype);
    for (std::size_t d = 0; d < copy.sizes.size(); ++d) {
        if (!turned[d] || copy.sizes[d] == 0) continue;
        copy.x_offset += (copy.sizes[d] - 1) * copy.x_strides[d];
        copy.x_strides[d] = -copy.x_strides[d];
    }
    return {copy};
}

void register_flip(OperatorRegistry& operators, EngineRegistry& engines) {
    operators.add(std::make_unique<Flip>());
    add_copy_engines(engines, movement);
}

}  // namespace dlprim::flip
