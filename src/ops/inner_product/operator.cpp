// SPDX-License-Identifier: MIT
// InnerProduct: [N, ...] -> [N, outputs], y = x W^T + bias with W [outputs, inputs]. The option
// axis is the first dimension of the features; those before it are kept. It uses the engines of
// MatMul, which are also registered under this type. Its gradients are MatMul nodes. With the
// option blocks, W is stored in blocks, which no solver changes.
#include "base/text.hpp"
#include "engine/activations.hpp"
#include "graph/block_oracle.hpp"
#include "graph/declared_operator.hpp"
#include "ops/inner_product/options.hpp"

#include <cmath>

namespace dlprim::inner_product {

namespace {

struct Sizes {
    std::size_t rows, inputs, outputs;
};
Sizes sizes_of(const Options& options, const HostArray& x, const HostArray& weight) {
    return {static_cast<std::size_t>(options.rows(x.shape)[0]),
            static_cast<std::size_t>(weight.shape[1]), static_cast<std::size_t>(weight.shape[0])};
}

/// Element (row, column) before the activation.
double linear(const std::vector<HostArray>& in, const Options& options, const Sizes& s,
              std::size_t row, std::size_t column) {
    double sum = options.bias ? in[2].data[column] : 0;
    for (std::size_t i = 0; i < s.inputs; ++i)
        sum += in[0].data[row * s.inputs + i] * in[1].data[column * s.inputs + i];
    return sum;
}

/// A weight in blocks as floats: all rows of it as a table.
ValueId unpacked(Graph& graph, const Node& node, const Options& options) {
    const std::string at = node.name + "/weight";
    const ValueId rows = graph.add1("Pointwise", at + "/rows", {},
                                    {{"code", std::string("y0 = index(0)")},
                                     {"shape", Ints{options.outputs}},
                                     {"dtypes", Strings{"int"}}});
    return graph.add1("Embedding", at, {rows, node.inputs[1]},
                      {{"num_embeddings", options.outputs},
                       {"embedding_dim", options.rows(graph.shape(node.inputs[0]))[1]},
                       {"blocks", options.blocks}});
}

class Operator : public DeclaredOperator<ops::InnerProduct> {
  public:
    FloatTypes float_types(const Attrs&) const override { return FloatTypes::wide; }
    std::vector<ParamSpec> params(const Attrs& attrs,
                                  std::span<const TensorSpec> inputs) const override {
        const Options options = Options::read(attrs);
        const Shape& x = inputs[0].shape;
        require(x.rank() >= 2, "input must be [N, ...], at least of two dimensions, got ", x);
        const std::int64_t features = options.rows(x)[1];
        require(options.inputs <= 0 || options.inputs == features, "input ", x, " has ", features,
                " features, option inputs says ", options.inputs);
        const double bound = features > 0 ? 1 / std::sqrt(static_cast<double>(features)) : 0;
        const auto [shape, dtype] = options.weight(features, inputs[0].dtype);
        ParamSpec weight{{shape, dtype}, Init::uniform(bound)};
        weight.init.fan_in = features;
        weight.init.fan_out = options.outputs;
        if (!options.blocks.empty()) weight = {{shape, dtype}, Init::constant(0), false};
        std::vector<ParamSpec> all{weight};
        if (options.bias)
            all.push_back({{Shape{options.outputs}, inputs[0].dtype}, Init::uniform(bound)});
        return all;
    }
    std::vector<TensorSpec> infer(const Attrs& attrs,
                                  std::span<const TensorSpec> inputs) const override {
        const Options options = Options::read(attrs);
        const std::vector<ParamSpec> wanted = params(attrs, inputs);
        require(is_float(inputs[0].dtype), "input must be of a float type, got ",
                name_of(inputs[0].dtype));
        require(inputs.size() == 1 + wanted.size(), "takes an input and ", wanted.size(),
                " parameters, got ", inputs.size(), " tensors");
        for (std::size_t i = 0; i < wanted.size(); ++i)
            if (inputs[i + 1].shape != wanted[i].spec.shape)
                fail(ErrorKind::invalid_argument, i == 0 ? "weight" : "bias", " is ",
                     inputs[i + 1].shape.str(), ", input ", inputs[0].shape.str(), " and ",
                     options.outputs, " outputs need ", wanted[i].spec.shape.str());
        if (!options.blocks.empty())
            require(inputs[1].dtype == DType::u8 && inputs[0].dtype != DType::f64,
                    "an input of float and a weight of uint8 are needed for blocks of ",
                    options.blocks, ", got ", name_of(inputs[0].dtype), " and ",
                    name_of(inputs[1].dtype));
        return {{options.output(inputs[0].shape), inputs[0].dtype}};
    }
    bool expand(Graph& graph, const Node& node, std::vector<ValueId>& outputs) const override {
        const Options options = Options::read(node.attrs);
        const Shape x = graph.shape(node.inputs[0]), rows = options.rows(x);
        const bool is_matrix = options.first_feature(x) == 1;  // what engines and gradient() take
        if (is_matrix && !x.empty() && !options.has_activation()) return false;
        std::vector<ValueId> inputs = node.inputs;
        if (!is_matrix || x.empty())
            inputs[0] = graph.reshape(node.name + "/rows", inputs[0], rows);
        Attrs attrs = node.attrs;
        attrs.set("activation", std::string("identity")).set("axis", std::int64_t{1});
        // An empty product is a MatMul, which knows what that is.
        ValueId y =
            x.empty()
                ? graph.add1(
                      "MatMul", node.name, inputs,
                      {{"transpose_b", true}, {"bias", options.bias}, {"blocks", options.blocks}})
                : graph.add1("InnerProduct", node.name, inputs, attrs);
        if (options.has_activation())
            y = graph.add1("Activation", node.name + "/activation", {y},
                           Attrs{{"activation", options.activation}});
        if (!is_matrix) y = graph.reshape(node.name + "/shape", y, graph.shape(node.outputs[0]));
        outputs = {y};
        return true;
    }
    bool is_linear_layer() const override { return true; }
    void gradient(GradientContext& context) const override {
        Graph& graph = context.graph;
        const Node& node = context.node;
        const Options options = Options::read(node.attrs);
        const ValueId x = node.inputs[0], weight = node.inputs[1], dy = context.output_gradients[0];
        const Shape x_shape = graph.shape(x), weight_shape = graph.shape(weight);
        const std::string& name = node.name;
        if (context.wanted[0]) {
            const ValueId w = options.blocks.empty() ? weight : unpacked(graph, node, options);
            const ValueId dx = graph.add1("MatMul", name + "/backward_data", {dy, w});
            context.input_gradients[0] = graph.reshape(name + "/backward_data/shape", dx, x_shape);
        }
        if (context.wanted[1] && options.blocks.empty()) {
            const ValueId rows =
                graph.reshape(name + "/rows", x, Shape{x_shape[0], weight_shape[1]});
            context.input_gradients[1] = graph.add1("MatMul", name + "/backward_filter", {dy, rows},
                                                    Attrs{{"transpose_a", true}});
        }
        if (options.bias && context.wanted[2]) {
            const ValueId sum = graph.pointwise1(name + "/backward_bias", "y0 = sum[0](x0)", {dy});
            context.input_gradients[2] =
                graph.reshape(name + "/backward_bias/shape", sum, Shape{options.outputs});
        }
    }
    double flops(const Attrs& attrs, std::span<const TensorSpec> inputs,
                 std::span<const TensorSpec> outputs) const override {
        return 2.0 * static_cast<double>(outputs[0].shape.numel()) *
               static_cast<double>(Options::read(attrs).rows(inputs[0].shape)[1]);
    }
    void oracle(OracleCall& call) const override {
        const Options options = Options::read(call.attrs);
        call.inputs[1] = unpacked_weights(options.blocks, call.inputs[1]);
        const Sizes s = sizes_of(options, call.inputs[0], call.inputs[1]);
        HostArray& y = call.outputs[0];
        y.shape = options.output(call.inputs[0].shape);
        y.data.resize(s.rows * s.outputs);
        for (std::size_t row = 0; row < s.rows; ++row)
            for (std::size_t column = 0; column < s.outputs; ++column) {
                double v = linear(call.inputs, options, s, row, column);
                if (options.has_activation()) {
                    const Activation& f = find_activation(options.activation);
                    v = activate(f.name, v, f.alpha, f.beta);
                }
                y.data[row * s.outputs + column] = v;
            }
    }
    void oracle_backward(OracleBackwardCall& call) const override {
        const Options options = Options::read(call.attrs);
        call.inputs[1] = unpacked_weights(options.blocks, call.inputs[1]);
        const Sizes s = sizes_of(options, call.inputs[0], call.inputs[1]);
        call.input_gradients.resize(call.inputs.size());
        for (std::size_t i = 0; i < call.inputs.size(); ++i) {
            call.input_gradients[i].shape = call.inputs[i].shape;
            call.input_gradients[i].data.assign(call.inputs[i].data.size(), 0);
        }
        for (std::size_t row = 0; row < s.rows; ++row)
            for (std::size_t column = 0; column < s.outputs; ++column) {
                double g = call.output_gradients[0].data[row * s.outputs + column];
                if (options.has_activation()) {
                    const Activation& f = find_activation(options.activation);
                    g *= activate_gradient(f.name, linear(call.inputs, options, s, row, column),
                                           f.alpha, f.beta);
                }
                if (options.bias) call.input_gradients[2].data[column] += g;
                for (std::size_t i = 0; i < s.inputs; ++i) {
                    call.input_gradients[0].data[row * s.inputs + i] +=
                        g * call.inputs[1].data[column * s.inputs + i];
                    call.input_gradients[1].data[column * s.inputs + i] +=
                        g * call.inputs[0].data[row * s.inputs + i];
                }
            }
        if (!options.blocks.empty()) call.input_gradients[1] = {};  // blocks have no gradient
    }
};

}  // namespace

void register_inner_product(OperatorRegistry& operators, EngineRegistry&) {
    operators.add(std::make_unique<Operator>());
}

}  // namespace dlprim::inner_product
