// SPDX-License-Identifier: MIT
// Attention: softmax(scale q k^T + mask) v, as torch.nn.functional.scaled_dot_product_attention: q
// [..., L, D], k [..., S, D], v [..., S, E] -> [..., L, E]; a fourth input is an additive mask,
// broadcast to [..., L, S]. A composite of MatMul, Pointwise and Softmax.
#include "ops/attention/operator.hpp"

#include "base/text.hpp"
#include "ops/attention/options.hpp"

namespace dlprim::attention {

const Schema& Operator::schema() const {
    static const Schema schema{
        {"scale", OptionKind::number, 0.0, "factor of q k^T; 0: 1/sqrt(D)"},
        {"is_causal", OptionKind::boolean, false, "position i attends to positions up to i alone"},
    };
    return schema;
}

Shape scores_shape(const Shape& q, const Shape& k) {
    const auto batch = [](const Shape& x) {
        return Shape(x.dims().first(static_cast<std::size_t>(x.rank() - 2)));
    };
    std::vector<std::int64_t> dims = broadcast(batch(q), batch(k)).to_vector();
    dims.push_back(q[-2]);
    dims.push_back(k[-2]);
    return Shape(dims);
}

std::vector<TensorSpec> Operator::infer(const Attrs&, std::span<const TensorSpec> inputs) const {
    require(inputs.size() == 3 || inputs.size() == 4, "takes q, k, v and perhaps a mask, got ",
            inputs.size(), " tensors");
    const Shape &q = inputs[0].shape, &k = inputs[1].shape, &v = inputs[2].shape;
    for (const TensorSpec& input : inputs)
        require(input.dtype == inputs[0].dtype && is_float(input.dtype),
                "inputs must be of one float type, got ", name_of(inputs[0].dtype), " and ",
                name_of(input.dtype));
    require(q.rank() >= 2 && k.rank() >= 2 && v.rank() >= 2, "q ", q.str(), ", k ", k.str(),
            " and v ", v.str(), " must have at least two dimensions");
    require(q[-1] == k[-1], "q ", q.str(), " and k ", k.str(), " differ in their last dimension");
    require(k[-2] == v[-2], "k ", k.str(), " and v ", v.str(),
            " differ in their number of positions");
    const Shape scores = scores_shape(q, k);
    if (inputs.size() == 4)
        require(broadcast(scores, inputs[3].shape) == scores, "the mask ", inputs[3].shape.str(),
                " does not broadcast to the scores ", scores.str());
    const auto batch = [](const Shape& x) {
        return Shape(x.dims().first(static_cast<std::size_t>(x.rank() - 2)));
    };
    std::vector<std::int64_t> dims = broadcast(batch(scores), batch(v)).to_vector();
    dims.push_back(q[-2]);
    dims.push_back(v[-1]);
    return {{Shape(dims), inputs[0].dtype}};
}

bool Operator::expand(Graph& graph, const Node& node, std::vector<ValueId>& outputs) const {
    const Shape q = graph.shape(node.inputs[0]);
    const Options options = Options::read(node.attrs, q);
    ValueId scores = graph.add1("MatMul", node.name + "/scores", {node.inputs[0], node.inputs[1]},
                                Attrs{{"transpose_b", true}, {"alpha", options.scale}});
    const int rank = graph.shape(scores).rank();
    const bool mask = node.inputs.size() > 3;
    if (mask || options.is_causal) {
        std::string score = mask ? "x0 + x1" : "x0";
        // The lowest float rather than -inf, whose differences are no numbers.
        if (options.is_causal)
            score =
                cat("select(index(", rank - 1, ") > index(", rank - 2, "), -3.4e38, ", score, ")");
        std::vector<ValueId> inputs{scores};
        if (mask) inputs.push_back(node.inputs[3]);
        scores = graph.pointwise1(node.name + "/mask", "y0 = " + score, inputs);
    }
    const ValueId weights = graph.add1("Softmax", node.name + "/softmax", {scores},
                                       Attrs{{"axis", std::int64_t{rank - 1}}});
    outputs = {graph.add1("MatMul", node.name + "/values", {weights, node.inputs[2]})};
    return true;
}

double Operator::flops(const Attrs&, std::span<const TensorSpec> inputs,
                       std::span<const TensorSpec> outputs) const {
    const Shape scores = scores_shape(inputs[0].shape, inputs[1].shape);
    return 2.0 * static_cast<double>(scores.numel()) * static_cast<double>(inputs[0].shape[-1]) +
           2.0 * static_cast<double>(outputs[0].shape.numel()) * static_cast<double>(scores[-1]);
}

}  // namespace dlprim::attention
