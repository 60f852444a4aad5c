// SPDX-License-Identifier: MIT
// Dropout: options, shape rule, and the Pointwise node that replaces it in training.
#include "ops/dropout/operator.hpp"

#include "base/hash.hpp"
#include "base/text.hpp"

namespace dlprim::dropout {

const Schema& Dropout::schema() const {
    static const Schema schema{
        {"p", OptionKind::number, 0.5, "the share of elements that become 0 in training"},
        {"stream", OptionKind::integer, std::int64_t{-1},
         "number of the random stream, at most 2^24 - 1; default: from the operator's name"}};
    return schema;
}

std::vector<TensorSpec> Dropout::infer(const Attrs& attrs,
                                       std::span<const TensorSpec> inputs) const {
    const double p = attrs.number("p");
    require(p >= 0 && p <= 1, "p is ", p, ", a share between 0 and 1 is needed");
    require(attrs.integer("stream") >= -1 && attrs.integer("stream") < (1 << 24), "stream is ",
            attrs.integer("stream"), ", a number from 0 to 2^24 - 1 is needed");
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

std::unique_ptr<Operator> make_operator() {
    return std::make_unique<Dropout>();
}

}  // namespace dlprim::dropout
