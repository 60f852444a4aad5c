// SPDX-License-Identifier: MIT
// Dropout: options, shape rule, and the Pointwise node that replaces it in training.
#include "ops/dropout/operator.hpp"

#include "base/hash.hpp"
#include "base/text.hpp"

namespace dlprim::dropout {

std::vector<TensorSpec> Dropout::infer(const Attrs&, std::span<const TensorSpec> inputs) const {
    require(is_float(inputs[0].dtype), "input has dtype ", name_of(inputs[0].dtype),
            ", a float type is needed");
    return {inputs[0]};
}

bool Dropout::expand(Graph& graph, const Node& node, std::vector<ValueId>& outputs) const {
    const double p = node.attrs.number("p");
    if (!graph.training || p == 0) {
        outputs = {node.inputs[0]};
        return true;
    }
    // 24 bits, which are exact where a program's constants are float.
    std::int64_t stream = node.attrs.integer("stream");
    if (stream < 0) stream = static_cast<std::int64_t>(hash64(node.name) & 0xffffff);
    outputs = graph.pointwise(
        node.name, cat("y0 = uniform(x1, x2, ", stream, ") >= p0 ? x0 * p1 : 0"),
        {node.inputs[0], graph.scalar("@seed", DType::i64), graph.scalar("@step", DType::i64)},
        {p, p < 1 ? 1 / (1 - p) : 0});
    graph.nodes.back().name = node.name;
    return true;
}

}  // namespace dlprim::dropout

namespace dlprim {

void register_dropout(OperatorRegistry& operators, EngineRegistry&) {
    operators.add(std::make_unique<dropout::Dropout>());
}

}  // namespace dlprim
