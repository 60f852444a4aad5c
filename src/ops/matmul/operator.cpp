// SPDX-License-Identifier: MIT
// MatMul as an operator: shapes, gradients (which are MatMul nodes too), nominal operations.
#include "ops/matmul/operator.hpp"

#include "base/blocks.hpp"
#include "base/text.hpp"
#include "graph/sum_to_shape.hpp"
#include "ops/matmul/gemm.hpp"

#include <cmath>

namespace dlprim::matmul {

namespace {

Attrs product(bool transpose_a, bool transpose_b, double alpha) {
    return attrs_of(ops::MatMul{transpose_a, transpose_b, alpha});
}

/// The second tensor's shape, of weights where it is stored in blocks.
Shape shape_of_b(const ops::MatMul& options, const Shape& b) {
    if (options.blocks.empty()) return b;
    return Shape{b[0], block_weights(block_type(options.blocks), b[1])};
}

void check_stored_in_blocks(const ops::MatMul& options, std::span<const TensorSpec> inputs) {
    const TensorSpec &a = inputs[0], &b = inputs[1];
    require(
        options.transpose_b && !options.transpose_a && b.shape.rank() == 2 && b.dtype == DType::u8,
        "blocks of ", options.blocks,
        " need transpose_b, no transpose_a, and a second input of uint8 whose rows are the "
        "columns of the product, got ",
        name_of(b.dtype), " ", b.shape);
    require(is_float(a.dtype) && a.dtype != DType::f64, "blocks of ", options.blocks,
            " need a first input of float, got ", name_of(a.dtype));
}

/// The product with a matrix in blocks: an InnerProduct over the last dimension.
ValueId as_inner_product(Graph& graph, const Node& node, const ops::MatMul& options) {
    const Shape a = graph.shape(node.inputs[0]);
    const bool is_scaled = options.alpha != 1;
    std::vector<ValueId> inputs = node.inputs;
    if (a.rank() == 1) inputs[0] = graph.reshape(node.name + "/row", inputs[0], Shape{1, a[0]});
    if (is_scaled) inputs.resize(2);
    ValueId y = graph.add1("InnerProduct", node.name, inputs,
                           {{"outputs", graph.shape(inputs[1])[0]},
                            {"bias", inputs.size() > 2},
                            {"axis", std::int64_t{-1}},
                            {"blocks", options.blocks}});
    if (is_scaled) {
        inputs = {y};
        if (options.bias) inputs.push_back(node.inputs[2]);
        y = graph.pointwise1(node.name + "/scaled",
                             options.bias ? "y0 = p0 * x0 + x1" : "y0 = p0 * x0", inputs,
                             {options.alpha});
    }
    return graph.reshape(node.name + "/shape", y, graph.shape(node.outputs[0]));
}

}  // namespace

std::vector<TensorSpec> Operator::infer(const Attrs& attrs,
                                        std::span<const TensorSpec> inputs) const {
    const auto options = read<ops::MatMul>(attrs);
    require(inputs.size() == (options.bias ? 3u : 2u), "takes ",
            options.bias ? "a, b and bias" : "a and b", ", got ", inputs.size(), " tensors");
    const TensorSpec &a = inputs[0], &b = inputs[1];
    if (!options.blocks.empty()) check_stored_in_blocks(options, inputs);
    for (const TensorSpec& input : inputs)
        require((is_float(input.dtype) || is_integer(input.dtype)) &&
                    (input.dtype == a.dtype || (!options.blocks.empty() && &input == &b)),
                "inputs must be of one type of floats or integers, got ", name_of(a.dtype), " and ",
                name_of(input.dtype));
    require(is_float(a.dtype) || options.alpha == std::trunc(options.alpha), "alpha is ",
            options.alpha, "; a product of integers needs a whole number");
    const MatMulShape s = matmul_shape(a.shape, shape_of_b(options, b.shape), options.transpose_a,
                                       options.transpose_b);
    if (options.bias)
        require(inputs[2].shape == Shape{s.n}, "bias is ", inputs[2].shape, ", the product has ",
                s.n, " columns: it must be [", s.n, "]");
    return {{s.output, a.dtype}};
}

bool Operator::expand(Graph& graph, const Node& given, std::vector<ValueId>& outputs) const {
    const TensorSpec made = graph.spec(given.outputs[0]);
    const bool no_products =
        graph.shape(given.inputs[0]).empty() || graph.shape(given.inputs[1]).empty();
    const auto options = read<ops::MatMul>(given.attrs);
    if (!made.shape.empty() && !no_products) {
        if (options.blocks.empty()) return false;
        outputs = {as_inner_product(graph, Node(given), options)};
        return true;
    }
    // Sums of no products are zeros, and no engine has to know of that.
    const bool bias = given.inputs.size() > 2;
    std::vector<ValueId> inputs;
    if (bias) inputs.push_back(given.inputs[2]);
    outputs = graph.add("Pointwise", given.name, inputs,
                        {{"code", std::string(bias ? "y0 = x0" : "y0 = 0")},
                         {"shape", Ints(made.shape.to_vector())},
                         {"dtypes", Strings{std::string(name_of(made.dtype))}}});
    return true;
}

void Operator::gradient(GradientContext& context) const {
    Graph& graph = context.graph;
    const Node& node = context.node;
    const auto options = read<ops::MatMul>(node.attrs);
    const Shape a_shape = graph.shape(node.inputs[0]), b_shape = graph.shape(node.inputs[1]);
    const MatMulShape s = matmul_shape(a_shape, b_shape, options.transpose_a, options.transpose_b);
    const bool ta = options.transpose_a && a_shape.rank() > 1,
               tb = options.transpose_b && b_shape.rank() > 1;
    const double alpha = options.alpha;
    const std::string& name = node.name;

    const ValueId dy =
        graph.reshape(name + "/gradient_matrix", context.output_gradients[0], s.full);
    const ValueId a = graph.reshape(name + "/a_matrix", node.inputs[0], s.a);
    const ValueId b = graph.reshape(name + "/b_matrix", node.inputs[1], s.b);
    if (context.wanted[0]) {
        ValueId da =
            ta ? graph.add1("MatMul", name + "/backward_a", {b, dy}, product(tb, true, alpha))
               : graph.add1("MatMul", name + "/backward_a", {dy, b}, product(false, !tb, alpha));
        da = sum_to_shape(graph, name + "/backward_a/sum", da, s.a);
        context.input_gradients[0] = graph.reshape(name + "/backward_a/shape", da, a_shape);
    }
    if (context.wanted[1]) {
        ValueId left = a, right = dy;
        bool left_transposed = ta;
        if (s.b.rank() == 2 && s.full.rank() > 2 && !ta &&
            s.a.product(0, s.a.rank() - 2) == s.batch.numel()) {
            // b is the same for all batches, so the product can include the sum over batches.
            const std::int64_t rows = s.batch.numel() * s.m;
            left = graph.reshape(name + "/a_rows", a, Shape{rows, s.k});
            right = graph.reshape(name + "/gradient_rows", dy, Shape{rows, s.n});
        }
        ValueId db = tb ? graph.add1("MatMul", name + "/backward_b", {right, left},
                                     product(true, left_transposed, alpha))
                        : graph.add1("MatMul", name + "/backward_b", {left, right},
                                     product(!left_transposed, false, alpha));
        db = sum_to_shape(graph, name + "/backward_b/sum", db, s.b);
        context.input_gradients[1] = graph.reshape(name + "/backward_b/shape", db, b_shape);
    }
    if (options.bias && context.wanted[2]) {
        const ValueId rows =
            graph.reshape(name + "/gradient_columns", dy, Shape{s.batch.numel() * s.m, s.n});
        const ValueId sum = graph.pointwise1(name + "/backward_bias", "y0 = sum[0](x0)", {rows});
        context.input_gradients[2] = graph.reshape(name + "/backward_bias/shape", sum, Shape{s.n});
    }
}

double Operator::flops(const Attrs& attrs, std::span<const TensorSpec> inputs,
                       std::span<const TensorSpec>) const {
    const auto options = read<ops::MatMul>(attrs);
    const MatMulShape s = matmul_shape(inputs[0].shape, shape_of_b(options, inputs[1].shape),
                                       options.transpose_a, options.transpose_b);
    return 2.0 * static_cast<double>(s.full.numel()) * static_cast<double>(s.k);
}

std::unique_ptr<dlprim::Operator> make_operator() {
    return std::make_unique<Operator>();
}

}  // namespace dlprim::matmul
