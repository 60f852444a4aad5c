// SPDX-License-Identifier: MIT
// Attention: softmax(scale q k^T + mask) v, as torch.nn.functional.scaled_dot_product_attention: q
// [..., L, D], k [..., S, D], v [..., S, E] -> [..., L, E]. An optional fourth input is a mask,
// which is broadcast to [..., L, S]. A float mask is added. A bool mask excludes the positions that
// are false. Integers are cumulative lengths, as FlashAttention's cu_seqlens: sequence n has the
// queries [lengths[n], lengths[n + 1]), and likewise the positions. It becomes AttentionForward
// (forward.cpp).
#include "ops/attention/operator.hpp"

#include "base/hash.hpp"
#include "base/text.hpp"
#include "ops/attention/cache.hpp"
#include "ops/attention/heads.hpp"
#include "ops/attention/options.hpp"

#include <algorithm>

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

/// Cumulative lengths are of a shape that fits the queries and positions.
void check_lengths(const TensorSpec& lengths, std::int64_t length, std::int64_t positions) {
    const Shape& shape = lengths.shape;
    require((shape.rank() == 1 || (shape.rank() == 2 && shape[0] == 2)) && shape[-1] >= 2,
            "cumulative lengths are [sequences + 1], or [2, sequences + 1] for queries and for "
            "keys, not ",
            shape);
    require(shape.rank() == 2 || length == positions, "there are ", length, " queries and ",
            positions, " positions, which need cumulative lengths [2, sequences + 1], not ", shape);
}

/// Whether two operands broadcast in the dimensions before their last two.
bool agree(const Shape& a, const Shape& b) {
    for (int d = 3; d <= std::min(a.rank(), b.rank()); ++d)
        if (a[-d] != b[-d] && a[-d] != 1 && b[-d] != 1) return false;
    return true;
}

/// Checks the dimensions before the last two of q, k and v, which are `shapes` in groups.
void check_batches(const std::vector<Shape>& given, const std::vector<Shape>& shapes) {
    const Shape &q = shapes[0], &k = shapes[1], &v = shapes[2];
    if (agree(q, k) && agree(q, v) && agree(k, v)) return;
    const bool groups = q.rank() >= 3 && k.rank() >= 3 && v.rank() >= 3 && k[-3] == v[-3] &&
                        k[-3] > 1 && q[-3] > k[-3] && q[-3] % k[-3] == 0;
    fail(ErrorKind::invalid_argument, "q ", given[0], ", k ", given[1], " and v ", given[2],
         " do not broadcast in the dimensions before their last two",
         groups ? "; with enable_gqa several heads of q share a head of k and v" : "");
}

bool broadcasts_to(const Shape& x, const Shape& to) {
    if (x.rank() > to.rank()) return false;
    for (int d = 1; d <= x.rank(); ++d)
        if (x[-d] != 1 && x[-d] != to[-d]) return false;
    return true;
}

}  // namespace

std::vector<Shape> operand_shapes(const Attrs& attrs, const std::vector<Shape>& given) {
    if (!attrs.boolean("enable_gqa")) return given;
    const Shape &q = given[0], &k = given[1], &v = given[2];
    require(q.rank() >= 3 && k.rank() >= 3 && v.rank() >= 3, "q ", q, ", k ", k, " and v ", v,
            " must have a dimension of heads for enable_gqa");
    const std::int64_t heads = q[-3], groups = k[-3];
    require(v[-3] == groups, "k ", k, " and v ", v, " differ in their number of heads");
    require(groups >= 1 && heads % groups == 0, "q ", q, " has ", heads,
            " heads, which is not a multiple of the heads of k ", k, " and v ", v);
    std::vector<Shape> shapes{in_groups(q, groups, heads / groups), in_groups(k, groups, 1),
                              in_groups(v, groups, 1)};
    if (given.size() > 3) {
        Shape mask = given[3];
        if (mask.rank() >= 3) {
            require(mask[-3] == 1 || mask[-3] == heads, "the mask ", mask, " has ", mask[-3],
                    " heads, q ", q, " has ", heads);
            mask = mask[-3] == 1 ? in_groups(mask, 1, 1) : in_groups(mask, groups, heads / groups);
        }
        shapes.push_back(mask);
    }
    return shapes;
}

std::size_t operands_among(const Attrs& attrs, std::size_t inputs) {
    return attrs.number("dropout_p") > 0 ? inputs - 2 : inputs;
}

IndexInput lengths_input(const Attrs& attrs, std::span<const TensorSpec> inputs, std::size_t mask) {
    if (operands_among(attrs, inputs.size()) <= mask || !are_lengths(inputs[mask].dtype)) return {};
    IndexInput lengths{static_cast<int>(mask), {inputs[0].shape[-2]}, false, true};
    if (inputs[mask].shape.rank() == 2) lengths.sizes.push_back(inputs[1].shape[-2]);
    return lengths;
}

void check_keys(std::span<const TensorSpec> keys) {
    for (const TensorSpec& key : keys)
        require(key == TensorSpec{Shape{1}, DType::i64},
                "the seed and the step of dropout are int64 [1], got ", name_of(key.dtype), ' ',
                key.shape);
}

Shape rows_shape(const Shape& y) {
    return Shape(y.dims().first(static_cast<std::size_t>(y.rank() - 1)));
}

Shape with_matrix(const Shape& batch, std::int64_t rows, std::int64_t columns) {
    std::vector<std::int64_t> dims = batch.to_vector();
    dims.push_back(rows);
    dims.push_back(columns);
    return Shape(dims);
}

Shape scores_shape(const Shape& q, const Shape& k) {
    return with_matrix(broadcast(without_last_two(q), without_last_two(k)), q[-2], k[-2]);
}

Shape batch_shape(const std::vector<Shape>& operands) {
    return broadcast(broadcast(without_last_two(operands[0]), without_last_two(operands[1])),
                     without_last_two(operands[2]));
}

std::vector<TensorSpec> Operator::infer(const Attrs& attrs,
                                        std::span<const TensorSpec> inputs) const {
    require(inputs.size() == 3 || inputs.size() == 4, "takes q, k, v and perhaps a mask, got ",
            inputs.size(), " tensors");
    const bool has_lengths = inputs.size() == 4 && are_lengths(inputs[3].dtype);
    std::vector<Shape> given;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        const TensorSpec& input = inputs[i];
        given.push_back(input.shape);
        if (i == 3 && (has_lengths || input.dtype == DType::boolean)) continue;
        require(
            input.dtype == inputs[0].dtype && is_float(input.dtype),
            "inputs must be of one float type, a mask of that or of bool, and cumulative lengths "
            "of int32 or int64; got ",
            name_of(inputs[0].dtype), " and ", name_of(input.dtype));
    }
    require(given[0].rank() >= 2 && given[1].rank() >= 2 && given[2].rank() >= 2, "q ", given[0],
            ", k ", given[1], " and v ", given[2], " must have at least two dimensions");
    const Options options = Options::read(attrs, given[0]);
    require(options.sliding_window == -1 || options.sliding_window >= 1, "sliding_window is ",
            options.sliding_window, ", and must be 1 or more, or -1 for none");
    const std::vector<Shape> shapes = operand_shapes(attrs, given);
    const Shape &q = shapes[0], &k = shapes[1], &v = shapes[2];
    require(q[-1] == k[-1], "q ", given[0], " and k ", given[1], " differ in their last dimension");
    require(k[-2] == v[-2], "k ", given[1], " and v ", given[2],
            " differ in their number of positions");
    check_batches(given, shapes);
    const Shape scores = scores_shape(q, k);
    if (has_lengths)
        check_lengths(inputs[3], q[-2], k[-2]);
    else if (inputs.size() == 4)
        require(broadcasts_to(shapes[3], scores), "the mask ", given[3],
                " does not broadcast to the scores ", scores);
    std::vector<std::int64_t> dims = with_matrix(batch_shape(shapes), q[-2], v[-1]).to_vector();
    if (options.enable_gqa) {  // merge groups and heads per group into heads again
        dims[dims.size() - 4] *= dims[dims.size() - 3];
        dims.erase(dims.end() - 3);
    }
    return {{Shape(dims), inputs[0].dtype}};
}

IndexInput Operator::index_input(const Attrs&, std::span<const TensorSpec> inputs) const {
    return lengths_input(Attrs{{"dropout_p", 0.0}}, inputs, 3);  // it has no seed and step yet
}

bool Operator::expand(Graph& graph, const Node& node, std::vector<ValueId>& outputs) const {
    Attrs attrs = node.attrs;
    std::vector<ValueId> inputs = node.inputs;
    if (!graph.training) attrs.set("dropout_p", 0.0);
    if (attrs.number("dropout_p") > 0) {
        inputs.push_back(graph.scalar("@seed", DType::i64));
        inputs.push_back(graph.scalar("@step", DType::i64));
        if (attrs.integer("stream") < 0)
            attrs.set("stream",
                      static_cast<std::int64_t>(hash64(node.name + "/dropout") & 0xffffff));
    }
    outputs = {graph.add(forward_type, node.name, inputs, attrs)[0]};
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

void register_attention(OperatorRegistry& operators, EngineRegistry& engines) {
    operators.add(std::make_unique<Operator>());
    operators.add(make_forward());
    operators.add(make_backward());
    operators.add(make_cache_update());
    operators.add(make_cached());
    operators.add(make_cached_step());
    add_wgmma(engines);
    add_matrix(engines);
    add_wgmma_backward(engines);
    add_matrix_backward(engines);
    add_online(engines);
    add_online_backward(engines);
    add_host(engines);
    add_host_backward(engines);
    add_cache_update(engines);
    add_cached_split(engines);
    add_cached_rows(engines);
    add_cached_host(engines);
}

}  // namespace dlprim::attention
