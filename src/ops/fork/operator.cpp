// SPDX-License-Identifier: MIT
// Fork: returns its input twice. It only orders the gradients of a value that many nodes read, such
// as the weights of recurrent networks. A chain of forks adds the gradients two at a time as they
// are computed, whereas a single sum would have to keep all of them.
#include "graph/declared_operator.hpp"

namespace dlprim::fork {

namespace {

struct ForkOptions {
    static constexpr std::string_view type = "Fork";
    static constexpr auto fields() { return ops::option_table(); }
};

class Fork : public InternalOperator<ForkOptions> {
  public:
    int outputs(const Attrs&) const override { return 2; }
    std::vector<TensorSpec> infer(const Attrs&, std::span<const TensorSpec> inputs) const override {
        return {inputs[0], inputs[0]};
    }
    void gradient(GradientContext& context) const override {
        const ValueId a = context.output_gradients[0], b = context.output_gradients[1];
        if (!context.wanted[0]) return;
        context.input_gradients[0] =
            a == no_value ? b
            : b == no_value
                ? a
                : context.graph.pointwise1(context.node.name + "/backward", "y0 = x0 + x1", {a, b});
    }
    bool lower(Graph&, const Node& node, std::vector<ValueId>& outputs) const override {
        outputs = {node.inputs[0], node.inputs[0]};
        return true;
    }
};

}  // namespace

void register_fork(OperatorRegistry& operators, EngineRegistry&) {
    operators.add(std::make_unique<Fork>());
}

}  // namespace dlprim::fork
