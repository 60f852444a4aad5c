// SPDX-License-Identifier: MIT
// AttentionBackward: the gradients of q, k and v. Engines compute scores again, tile by tile; else
// it is a composite that does so as a whole.
#include "base/text.hpp"
#include "ops/attention/composite.hpp"
#include "ops/attention/heads.hpp"
#include "ops/attention/operator.hpp"

namespace dlprim::attention {

namespace {

struct BackwardOptions : ops::Attention {
    static constexpr std::string_view type = backward_type;
};

class Backward : public InternalOperator<BackwardOptions, IndexedOperator> {
  public:
    int min_inputs() const override { return 6; }
    int max_inputs() const override { return 9; }
    int outputs(const Attrs&) const override { return 3; }
    std::vector<TensorSpec> infer(const Attrs& attrs,
                                  std::span<const TensorSpec> inputs) const override {
        check(attrs, inputs);
        const std::vector<Shape> shapes =
            operand_shapes(attrs, {inputs[0].shape, inputs[1].shape, inputs[2].shape});
        const Shape batch = batch_shape(shapes);
        std::vector<TensorSpec> made;
        made.reserve(shapes.size());
        for (const Shape& shape : shapes)
            made.push_back({with_matrix(batch, shape[-2], shape[-1]), inputs[0].dtype});
        return made;
    }
    double flops(const Attrs& attrs, std::span<const TensorSpec> inputs,
                 std::span<const TensorSpec>) const override {
        const TensorSpec& y = inputs[5];  // dy has its shape
        return 2.5 * OperatorRegistry::instance()
                         .get(ops::Attention::type)
                         .flops(attrs, inputs.first(3), {&y, 1});
    }

    IndexInput index_input(const Attrs& attrs, std::span<const TensorSpec> inputs) const override {
        return lengths_input(attrs, inputs, 6);
    }

    bool may_stay_whole() const override { return true; }
    bool expand(Graph& graph, const Node& node, std::vector<ValueId>& outputs) const override {
        if (operands_among(node.attrs, node.inputs.size()) > 6 &&
            are_lengths(graph.spec(node.inputs[6]).dtype))
            return false;  // as AttentionForward
        std::vector<ValueId> inputs{node.inputs[0], node.inputs[1], node.inputs[2]};
        inputs.insert(inputs.end(), node.inputs.begin() + 6, node.inputs.end());
        Composite parts(graph, node.name, node.attrs, inputs);
        const ValueId dy = node.inputs[5];
        const auto [weights, capped] = parts.gradients(node.inputs[3], node.inputs[4], dy);
        const ValueId scores = parts.through_softcap(capped);
        const Attrs scaled{{"alpha", parts.options().scale}};
        const ValueId rows = parts.in_groups("dy", dy, graph.shape(parts.operand(2))[-1]);
        outputs = {
            graph.add1("MatMul", node.name + "/dq", {scores, parts.operand(1)}, scaled),
            graph.add1("MatMul", node.name + "/dk", {scores, parts.operand(0)},
                       Attrs{{"transpose_a", true}, {"alpha", parts.options().scale}}),
            graph.add1("MatMul", node.name + "/dv", {weights, rows}, Attrs{{"transpose_a", true}})};
        return true;
    }

  private:
    /// The operands are Attention's, and what is made of its result fits that.
    static void check(const Attrs& attrs, std::span<const TensorSpec> inputs) {
        const std::size_t operands = operands_among(attrs, inputs.size());
        require(operands == 6 || operands == 7, "takes q, k, v, logarithms, sums, dy, perhaps a ",
                "mask, and with dropout a seed and a step; got ", inputs.size(), " tensors");
        check_keys(inputs.subspan(operands));
        std::vector<TensorSpec> given(inputs.begin(), inputs.begin() + 3);
        if (operands > 6) given.push_back(inputs[6]);
        const TensorSpec y =
            OperatorRegistry::instance().get(ops::Attention::type).infer(attrs, given)[0];
        require(inputs[5] == y, "dy ", inputs[5].shape, " must be ", name_of(y.dtype), ' ',
                y.shape);
        const Shape rows = rows_shape(y.shape);
        for (const TensorSpec& each : inputs.subspan(3, 2))
            require(each.shape == rows && is_float(each.dtype), "logarithms and sums must be ",
                    "floats ", rows, ", got ", name_of(each.dtype), ' ', each.shape);
    }
};

}  // namespace

std::unique_ptr<dlprim::Operator> make_backward() {
    return std::make_unique<Backward>();
}

}  // namespace dlprim::attention
