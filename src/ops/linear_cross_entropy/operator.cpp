// SPDX-License-Identifier: MIT
// LinearCrossEntropy: options, shapes, and how the losses of rows become one.
#include "ops/linear_cross_entropy/operator.hpp"

#include "base/text.hpp"
#include "graph/declared_operator.hpp"

#include <cmath>

namespace dlprim::linear_cross_entropy {

namespace {

class LinearCrossEntropy final : public DeclaredOperator<ops::LinearCrossEntropy> {
  public:
    FloatTypes float_types(const Attrs&) const override { return FloatTypes::wide; }
    int min_inputs() const override { return 2; }
    std::pair<int, std::int64_t> label_input(const Attrs& attrs,
                                             std::span<const TensorSpec>) const override {
        return {1, attrs.integer("outputs")};
    }

    std::vector<ParamSpec> params(const Attrs& attrs,
                                  std::span<const TensorSpec> inputs) const override {
        const Shape& x = inputs[0].shape;
        require(x.rank() >= 2 && !x.empty(),
                "input must be [..., features] with at least one row and one feature, got ",
                x.str());
        const std::int64_t outputs = attrs.integer("outputs");
        const double bound = 1 / std::sqrt(static_cast<double>(x[-1]));
        ParamSpec weight{{Shape{outputs, x[-1]}, inputs[0].dtype}, Init::uniform(bound)};
        weight.init.fan_in = x[-1];
        weight.init.fan_out = outputs;
        std::vector<ParamSpec> all{weight};
        if (attrs.boolean("bias"))
            all.push_back({{Shape{outputs}, inputs[0].dtype}, Init::uniform(bound)});
        return all;
    }

    std::vector<TensorSpec> infer(const Attrs& attrs,
                                  std::span<const TensorSpec> inputs) const override {
        const Shape &x = inputs[0].shape, &label = inputs[1].shape;
        const std::vector<ParamSpec> wanted = params(attrs, inputs);
        require(is_float(inputs[0].dtype), "input has dtype ", name_of(inputs[0].dtype),
                ", a float type is needed");
        const Shape rows(x.dims().first(static_cast<std::size_t>(x.rank() - 1)));
        require(label == rows, "labels have shape ", label.str(), ", the input of shape ", x.str(),
                " needs ", rows.str());
        require(inputs.size() == 2 + wanted.size(), "has ", inputs.size() - 2, " parameters, ",
                wanted.size(), " are needed");
        for (std::size_t i = 0; i < wanted.size(); ++i)
            require(inputs[i + 2].shape == wanted[i].spec.shape, i == 0 ? "weight" : "bias", " is ",
                    inputs[i + 2].shape.str(), ", input ", x.str(), " and ",
                    attrs.integer("outputs"), " outputs need ", wanted[i].spec.shape.str());
        return {{attrs.text("reduce") == "none" ? rows : Shape{1}, inputs[0].dtype}};
    }

    bool expand(Graph& graph, const Node& given, std::vector<ValueId>& outputs) const override {
        const Node node = given;
        const Shape x = graph.shape(node.inputs[0]), made = graph.shape(node.outputs[0]);
        const std::int64_t rows = x.product(0, x.rank() - 1);
        std::vector<ValueId> inputs = node.inputs;
        inputs[0] = graph.reshape(node.name + "/rows", inputs[0], Shape{rows, x[-1]});
        inputs[1] = graph.reshape(node.name + "/labels", inputs[1], Shape{rows});
        ValueId loss = graph.add(rows_type, node.name, inputs, node.attrs)[0];
        const std::int64_t ignored = node.attrs.integer("ignore_index");
        const std::string& reduce = node.attrs.text("reduce");
        if (reduce == "mean" && ignored != no_label) {
            const auto sums = graph.pointwise(
                node.name + "/sums", cat("y0 = sum[](x0); y1 = sum[](x1 != ", ignored, " ? 1 : 0)"),
                {loss, inputs[1]});
            loss = graph.pointwise1(node.name + "/mean", "y0 = x0 / x1", sums);
        } else if (reduce != "none") {
            loss =
                graph.pointwise1(node.name + "/" + reduce, cat("y0 = ", reduce, "[](x0)"), {loss});
        }
        outputs = {graph.reshape(node.name + "/shape", loss, made)};
        return true;
    }

    void oracle(OracleCall& call) const override { linear_cross_entropy::oracle(call); }
    void oracle_backward(OracleBackwardCall& call) const override {
        linear_cross_entropy::oracle_backward(call);
    }
};

}  // namespace

void register_linear_cross_entropy(OperatorRegistry& operators, EngineRegistry&) {
    operators.add(std::make_unique<LinearCrossEntropy>());
    operators.add(make_rows());
}

}  // namespace dlprim::linear_cross_entropy
