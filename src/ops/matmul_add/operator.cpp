// SPDX-License-Identifier: MIT
// MatMulAdd as an operator: options, shapes, and what it is made of.
#include "ops/matmul_add/operator.hpp"

#include "base/text.hpp"
#include "graph/declared_operator.hpp"

#include <array>
#include <cmath>

namespace dlprim::matmul_add {

namespace {

/// MatMul's options.
Attrs product_attrs(const Attrs& attrs) {
    return {{"transpose_a", attrs.boolean("transpose_a")},
            {"transpose_b", attrs.boolean("transpose_b")},
            {"alpha", attrs.number("alpha")}};
}

/// Whether c has an element for each column of the product, or can be seen so.
bool is_row(const Shape& c, const Shape& product) {
    return product.rank() > 1 && c.rank() > 0 && c[-1] == product[-1] && c.numel() == product[-1];
}

class MatMulAdd : public DeclaredOperator<ops::MatMulAdd> {
  public:
    int min_inputs() const override { return 3; }
    FloatTypes float_types(const Attrs&) const override { return FloatTypes::wide; }

    std::vector<TensorSpec> infer(const Attrs& attrs,
                                  std::span<const TensorSpec> inputs) const override {
        const DType dtype = inputs[0].dtype;
        const Shape& c = inputs[2].shape;
        require(inputs[2].dtype == dtype, "inputs must be of one type, got ", name_of(dtype),
                " and ", name_of(inputs[2].dtype));
        for (const char* name : {"alpha", "beta"})
            require(is_float(dtype) || attrs.number(name) == std::trunc(attrs.number(name)), name,
                    " is ", attrs.number(name), "; integers need a whole number");
        const TensorSpec product = matmul(inputs.first(2), attrs);
        Shape whole;
        try {
            whole = broadcast(c, product.shape);
        } catch (const Error&) {
            whole = Shape{};
        }
        require(whole == product.shape, "the third input is ", c, ", the product ", product.shape,
                "; it must be the same or broadcast to it");
        return {product};
    }

    bool expand(Graph& graph, const Node& given, std::vector<ValueId>& outputs) const override {
        const Node node = given;
        const ValueId a = node.inputs[0], b = node.inputs[1], c = node.inputs[2];
        const double beta = node.attrs.number("beta");
        const Shape product = graph.shape(node.outputs[0]);
        Attrs attrs = product_attrs(node.attrs);
        if (beta == 0) {
            outputs = graph.add("MatMul", node.name, {a, b}, attrs);
        } else if (is_row(graph.shape(c), product)) {
            attrs.set("bias", true);
            const ValueId row = graph.reshape(node.name + "/row", c, Shape{product[-1]});
            outputs = graph.add("MatMul", node.name, {a, b, scaled(graph, node, row)}, attrs);
        } else {
            const ValueId y = graph.add1("MatMul", node.name, {a, b}, attrs);
            // A plain sum of tensors of one shape becomes part of the product's launch.
            if (beta == 1)
                outputs = graph.add("Elementwise", node.name + "/sum", {y, c});
            else
                outputs = graph.pointwise(node.name + "/sum",
                                          cat("y0 = x0 + ", factor(graph, node), " * x1"), {y, c},
                                          factors(graph, node));
        }
        return true;
    }

    double flops(const Attrs& attrs, std::span<const TensorSpec> inputs,
                 std::span<const TensorSpec> outputs) const override {
        const Shape& a = inputs[0].shape;
        const std::int64_t k = a.rank() == 1 ? a[0] : a[attrs.boolean("transpose_a") ? -2 : -1];
        return 2.0 * static_cast<double>(outputs[0].shape.numel()) * static_cast<double>(k);
    }

    void oracle(OracleCall& call) const override { matmul_add::oracle(call); }
    void oracle_backward(OracleBackwardCall& call) const override {
        matmul_add::oracle_backward(call);
    }

  private:
    static TensorSpec matmul(std::span<const TensorSpec> inputs, const Attrs& attrs) {
        const Operator& op = OperatorRegistry::instance().get("MatMul");
        return op.infer(op.schema().complete(product_attrs(attrs), ""), inputs)[0];
    }
    /// beta in a Pointwise program: a scalar, or an integer's digits.
    static std::string factor(const Graph& graph, const Node& node) {
        if (is_float(graph.spec(node.inputs[2]).dtype)) return "p0";
        return cat(static_cast<std::int64_t>(node.attrs.number("beta")));
    }
    static std::vector<double> factors(const Graph& graph, const Node& node) {
        if (is_float(graph.spec(node.inputs[2]).dtype)) return {node.attrs.number("beta")};
        return {};
    }
    static ValueId scaled(Graph& graph, const Node& node, ValueId value) {
        if (node.attrs.number("beta") == 1) return value;
        return graph.pointwise1(node.name + "/scaled", cat("y0 = x0 * ", factor(graph, node)),
                                {value}, factors(graph, node));
    }
};

}  // namespace

void register_matmul_add(OperatorRegistry& operators, EngineRegistry&) {
    operators.add(std::make_unique<MatMulAdd>());
}

}  // namespace dlprim::matmul_add
