// SPDX-License-Identifier: MIT
// Gather as an operator: its options, shape rule and gradient.
#include "ops/gather/operator.hpp"

#include "base/text.hpp"
#include "engine/indexing/indexing.hpp"
#include "graph/declared_operator.hpp"
#include "graph/defines_edges.hpp"
#include "graph/indexed_operator.hpp"

namespace dlprim::gather {

namespace {

class Gather : public DeclaredOperator<ops::Gather, IndexedOperator>, public DefinesEdges {
  public:
    FloatTypes float_types(const Attrs&) const override { return FloatTypes::all; }
    bool defines_edges(const Attrs&) const override { return true; }
    int min_inputs() const override { return 2; }
    std::vector<TensorSpec> infer(const Attrs& attrs,
                                  std::span<const TensorSpec> inputs) const override {
        const Indexing indexing(attrs, inputs[0].shape, inputs[1].shape, inputs[1].dtype);
        return {{indexing.values, inputs[0].dtype}};
    }
    IndexInput index_input(const Attrs& attrs, std::span<const TensorSpec> inputs) const override {
        const Indexing indexing(attrs, inputs[0].shape, inputs[1].shape, inputs[1].dtype);
        return {1, indexing.sizes, indexing.from_end};
    }

    void gradient(GradientContext& context) const override {
        const ValueId dy = context.output_gradients[0];
        const Node& node = context.node;
        Attrs attrs = indexing_attrs(node.attrs);
        attrs.set("reduction", std::string("add"));
        attrs.set("shape", context.graph.shape(node.inputs[0]).to_vector());
        context.input_gradients[0] =
            context.graph.add1("Scatter", node.name + "/backward", {node.inputs[1], dy}, attrs);
    }

    void oracle(OracleCall& call) const override { gather::oracle(call); }
    void oracle_backward(OracleBackwardCall& call) const override { gather::oracle_backward(call); }
};

}  // namespace

void register_gather(OperatorRegistry& operators, EngineRegistry& engines) {
    operators.add(std::make_unique<Gather>());
    add_host_engine(engines);
    add_reference_engine(engines);
}

}  // namespace dlprim::gather
