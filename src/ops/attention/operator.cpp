// SPDX-License-Identifier: MIT
// Attention: softmax(scale q k^T + mask) v, as torch.nn.functional.scaled_dot_product_attention: q
// [..., L, D], k [..., S, D], v [..., S, E] -> [..., L, E]. An optional fourth input is a mask,
// which is broadcast to [..., L, S]. A float mask is added. A bool mask excludes the positions that
// are false. A composite of MatMul, Pointwise, Softmax and Dropout.
#include "ops/attention/operator.hpp"

#include "base/text.hpp"
#include "ops/attention/options.hpp"

namespace dlprim::attention {

namespace {

Shape without_last_two(const Shape& x) {
    return Shape(x.dims().first(static_cast<std::size_t>(x.rank() - 2)));
}

/// The shape x with dimension -3, the heads, divided into groups and heads per group.
Shape in_groups(const Shape& x, std::int64_t groups, std::int64_t heads_a_group) {
    std::vector<std::int64_t> dims = x.to_vector();
    dims[dims.size() - 3] = groups;
    dims.insert(dims.end() - 2, heads_a_group);
    return Shape(dims);
}

}  // namespace

std::vector<Shape> operand_shapes(const Attrs& attrs, const std::vector<Shape>& given) {
    if (!attrs.boolean("enable_gqa")) return given;
    const Shape &q = given[0], &k = given[1], &v = given[2];
    require(q.rank() >= 3 && k.rank() >= 3 && v.rank() >= 3, "q ", q.str(), ", k ", k.str(),
            " and v ", v.str(), " must have a dimension of heads for enable_gqa");
    const std::int64_t heads = q[-3], groups = k[-3];
    require(v[-3] == groups && groups >= 1 && heads % groups == 0, "q ", q.str(), " has ", heads,
            " heads, which is not a multiple of the heads of k ", k.str(), " and v ", v.str());
    std::vector<Shape> shapes{in_groups(q, groups, heads / groups), in_groups(k, groups, 1),
                              in_groups(v, groups, 1)};
    if (given.size() > 3) {
        Shape mask = given[3];
        if (mask.rank() >= 3) {
            require(mask[-3] == 1 || mask[-3] == heads, "the mask ", mask.str(), " is of ",
                    mask[-3], " heads, q ", q.str(), " has ", heads);
            mask = mask[-3] == 1 ? in_groups(mask, 1, 1) : in_groups(mask, groups, heads / groups);
        }
        shapes.push_back(mask);
    }
    return shapes;
}

Shape scores_shape(const Shape& q, const Shape& k) {
    std::vector<std::int64_t> dims =
        broadcast(without_last_two(q), without_last_two(k)).to_vector();
    dims.push_back(q[-2]);
    dims.push_back(k[-2]);
    return Shape(dims);
}

std::vector<TensorSpec> Operator::infer(const Attrs& attrs,
                                        std::span<const TensorSpec> inputs) const {
    require(inputs.size() == 3 || inputs.size() == 4, "takes q, k, v and perhaps a mask, got ",
            inputs.size(), " tensors");
    std::vector<Shape> given;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        const TensorSpec& input = inputs[i];
        given.push_back(input.shape);
        if (i == 3 && input.dtype == DType::boolean) continue;
        require(input.dtype == inputs[0].dtype && is_float(input.dtype),
                "inputs must be of one float type, and a mask of that or of bool; got ",
                name_of(inputs[0].dtype), " and ", name_of(input.dtype));
    }
    require(given[0].rank() >= 2 && given[1].rank() >= 2 && given[2].rank() >= 2, "q ",
            given[0].str(), ", k ", given[1].str(), " and v ", given[2].str(),
            " must have at least two dimensions");
    const Options options = Options::read(attrs, given[0]);
    const std::vector<Shape> shapes = operand_shapes(attrs, given);
    const Shape &q = shapes[0], &k = shapes[1], &v = shapes[2];
    require(q[-1] == k[-1], "q ", given[0].str(), " and k ", given[1].str(),
            " differ in their last dimension");
    require(k[-2] == v[-2], "k ", given[1].str(), " and v ", given[2].str(),
            " differ in their number of positions");
    const Shape scores = scores_shape(q, k);
    if (inputs.size() == 4)
        require(broadcast(scores, shapes[3]) == scores, "the mask ", given[3].str(),
                " does not broadcast to the scores ", scores.str());
    std::vector<std::int64_t> dims =
        broadcast(without_last_two(scores), without_last_two(v)).to_vector();
    dims.push_back(q[-2]);
    dims.push_back(v[-1]);
    if (options.enable_gqa) {  // merge groups and heads per group into heads again
        dims[dims.size() - 4] *= dims[dims.size() - 3];
        dims.erase(dims.end() - 3);
    }
    return {{Shape(dims), inputs[0].dtype}};
}

bool Operator::expand(Graph& graph, const Node& node, std::vector<ValueId>& outputs) const {
    std::vector<Shape> given;
    for (const ValueId id : node.inputs) given.push_back(graph.shape(id));
    const Options options = Options::read(node.attrs, given[0]);
    const std::vector<Shape> shapes = operand_shapes(node.attrs, given);
    std::vector<ValueId> operands;
    for (std::size_t i = 0; i < shapes.size(); ++i)
        operands.push_back(graph.reshape(cat(node.name, "/grouped", i), node.inputs[i], shapes[i]));
    ValueId scores = graph.add1("MatMul", node.name + "/scores", {operands[0], operands[1]},
                                Attrs{{"transpose_b", true}, {"alpha", options.scale}});
    const int rank = graph.shape(scores).rank();
    const bool mask = operands.size() > 3;
    const bool chooses = mask && graph.spec(operands[3]).dtype == DType::boolean;
    if (mask || options.is_causal) {
        // The lowest float is used instead of -inf, because differences of infinities are NaN.
        std::string score = chooses ? "select(x1, x0, -3.4e38)" : mask ? "x0 + x1" : "x0";
        if (options.is_causal)
            score =
                cat("select(index(", rank - 1, ") > index(", rank - 2, "), -3.4e38, ", score, ")");
        std::vector<ValueId> inputs{scores};
        if (mask) inputs.push_back(operands[3]);
        scores = graph.pointwise1(node.name + "/mask", "y0 = " + score, inputs);
    }
    ValueId weights = graph.add1("Softmax", node.name + "/softmax", {scores},
                                 Attrs{{"axis", std::int64_t{rank - 1}}});
    if (chooses)  // a row that the mask excludes completely is 0, as in PyTorch
        weights =
            graph.pointwise1(node.name + "/left", "y0 = select(x1, x0, 0)", {weights, operands[3]});
    if (options.dropout_p > 0 && graph.training)
        weights = graph.add1("Dropout", node.name + "/dropout", {weights},
                             Attrs{{"p", options.dropout_p}, {"stream", options.stream}});
    const ValueId y = graph.add1("MatMul", node.name + "/values", {weights, operands[2]});
    outputs = {graph.reshape(node.name + "/heads", y, graph.shape(node.outputs[0]))};
    return true;
}

double Operator::flops(const Attrs& attrs, std::span<const TensorSpec> inputs,
                       std::span<const TensorSpec> outputs) const {
    const std::vector<Shape> shapes =
        operand_shapes(attrs, {inputs[0].shape, inputs[1].shape, inputs[2].shape});
    const Shape scores = scores_shape(shapes[0], shapes[1]);
    return 2.0 * static_cast<double>(scores.numel()) * static_cast<double>(inputs[0].shape[-1]) +
           2.0 * static_cast<double>(outputs[0].shape.numel()) * static_cast<double>(scores[-1]);
}

}  // namespace dlprim::attention

namespace dlprim {

void register_attention(OperatorRegistry& operators, EngineRegistry&) {
    operators.add(std::make_unique<attention::Operator>());
}

}  // namespace dlprim
