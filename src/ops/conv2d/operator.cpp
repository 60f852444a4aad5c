// SPDX-License-Identifier: MIT
// Convolution2D: options, shapes, parameters and gradient rule.
#include "base/text.hpp"
#include "engine/activations.hpp"
#include "graph/declared_operator.hpp"
#include "graph/passes/passes.hpp"
#include "ops/conv2d/operators.hpp"
#include "ops/conv2d/options.hpp"

#include <cmath>

namespace dlprim::conv2d {

namespace {

// The attributes that a gradient operator takes from its convolution.
Attrs gradient_attrs(const Attrs& attrs) {
    Attrs kept;
    for (const char* name : {"groups", "kernel", "stride", "pad", "dilate"})
        if (attrs.has(name)) kept.set(name, attrs.items().find(name)->second);
    return kept;
}

std::vector<ParamSpec> conv2d_params(const Conv2dOptions& options, const TensorSpec& x) {
    require(x.shape.rank() == 4, "input must be [N, C, H, W], not ", x.shape.str());
    const std::int64_t in = x.shape[1];
    require(in >= 1, "input ", x.shape.str(), " has no channels");
    require(options.channels_in < 0 || options.channels_in == in, "input ", x.shape.str(), " has ",
            in, " channels, channels_in says ", options.channels_in);
    require(in % options.groups == 0 && options.channels_out % options.groups == 0, in,
            " input and ", options.channels_out, " output channels do not divide into ",
            options.groups, " groups");
    const Shape weight{options.channels_out, in / options.groups, options.kernel[0],
                       options.kernel[1]};
    const std::int64_t fan_in = weight.product(1, 4);
    const double bound = fan_in > 0 ? 1 / std::sqrt(static_cast<double>(fan_in)) : 0;
    ParamSpec spec{{weight, x.dtype}, Init::uniform(bound), true};
    spec.init.fan_in = fan_in;
    spec.init.fan_out = weight[0] * weight[2] * weight[3];
    std::vector<ParamSpec> params{spec};
    if (options.bias)
        params.push_back({{Shape{options.channels_out}, x.dtype}, Init::uniform(bound), true});
    return params;
}

class Convolution2D : public DeclaredOperator<ops::Convolution2D> {
  public:
    FloatTypes float_types(const Attrs&) const override { return FloatTypes::wide; }

    std::vector<ParamSpec> params(const Attrs& attrs,
                                  std::span<const TensorSpec> inputs) const override {
        const Conv2dOptions options = Conv2dOptions::read(attrs);
        for (const std::int64_t pad : options.pad)
            require(pad >= 0, "pad must be at least 0, not ", pad);
        return conv2d_params(options, inputs[0]);
    }

    std::vector<TensorSpec> infer(const Attrs& attrs,
                                  std::span<const TensorSpec> inputs) const override {
        const Conv2dOptions options = Conv2dOptions::read(attrs);
        const std::vector<ParamSpec> wanted = conv2d_params(options, inputs[0]);
        require(inputs.size() > wanted.size(), "needs ", wanted.size(), " parameters, got ",
                inputs.size() - 1);
        for (std::size_t i = 0; i < wanted.size(); ++i) {
            require(inputs[i + 1].shape == wanted[i].spec.shape, i == 0 ? "weight" : "bias", " is ",
                    inputs[i + 1].shape.str(), ", input ", inputs[0].shape.str(), " needs ",
                    wanted[i].spec.shape.str());
            const bool floats = has_16_bits(inputs[0].dtype) && inputs[i + 1].dtype == DType::f32;
            require(floats || inputs[i + 1].dtype == inputs[0].dtype, i == 0 ? "weight" : "bias",
                    " is ", name_of(inputs[i + 1].dtype), ", the input ", name_of(inputs[0].dtype));
        }
        require(is_float(inputs[0].dtype), "input must be of a floating-point type, not ",
                name_of(inputs[0].dtype));
        const Shape& x = inputs[0].shape;
        const std::int64_t oh = options.output_size(x[2], 0), ow = options.output_size(x[3], 1);
        require(oh >= 1 && ow >= 1, "kernel [", options.kernel[0], ", ", options.kernel[1],
                "] dilated by [", options.dilate[0], ", ", options.dilate[1],
                "] does not fit into input ", x.str(), " padded by [", options.pad[0], ", ",
                options.pad[1], ", ", options.pad[2], ", ", options.pad[3], "]");
        return {{Shape{x[0], options.channels_out, oh, ow}, inputs[0].dtype}};
    }

    bool expand(Graph& graph, const Node& given, std::vector<ValueId>& outputs) const override {
        const Conv2dOptions options = Conv2dOptions::read(given.attrs);
        const TensorSpec made = graph.spec(given.outputs[0]);
        if (made.shape.empty()) {  // no images: no engine has to know of that
            outputs = graph.add("Pointwise", given.name, {},
                                {{"code", std::string("y0 = 0")},
                                 {"shape", Ints(made.shape.to_vector())},
                                 {"dtypes", Strings{std::string(name_of(made.dtype))}}});
            return true;
        }
        if (options.activation == "identity") return false;
        find_activation(options.activation);  // fails here if the name is misspelt
        const Node node = given;
        Attrs attrs = node.attrs;
        attrs.set("activation", std::string("identity"));
        const ValueId y = graph.add1(type(), node.name, node.inputs, attrs);
        Node& conv = graph.nodes[static_cast<std::size_t>(graph.value(y).producer)];
        conv.name = node.name;  // the original node is removed, and this one takes its name
        conv.engine = node.engine;
        conv.frozen = node.frozen;
        outputs = graph.add("Activation", node.name + "/activation", {y},
                            {{"activation", options.activation}});
        return true;
    }

    bool is_linear_layer() const override { return true; }
    bool differentiable() const override { return true; }

    void gradient(GradientContext& context) const override {
        const Node& node = context.node;
        Graph& graph = context.graph;
        const ValueId x = node.inputs[0], weight = node.inputs[1], dy = context.output_gradients[0];
        context.input_gradients.assign(node.inputs.size(), no_value);
        if (dy == no_value) return;
        if (context.wanted[0]) {
            Attrs attrs = gradient_attrs(node.attrs);
            attrs.set("input_shape", graph.shape(x).to_vector());
            context.input_gradients[0] =
                graph.add1(backward_data_type, node.name + "/backward_data", {dy, weight}, attrs);
        }
        if (context.wanted[1]) {
            Attrs attrs = gradient_attrs(node.attrs);
            attrs.set("weight_shape", graph.shape(weight).to_vector());
            context.input_gradients[1] =
                graph.add1(backward_filter_type, node.name + "/backward_filter", {x, dy}, attrs);
        }
        if (node.inputs.size() > 2 && context.wanted[2]) {
            const Shape bias = graph.shape(node.inputs[2]);
            const std::string name = node.name + "/backward_bias";
            ValueId sum = graph.pointwise1(name, "y0 = sum[0,2,3](x0)", {dy});
            if (graph.shape(sum) != bias) sum = graph.reshape(name + "/reshape", sum, bias);
            context.input_gradients[2] = sum;
        }
    }

    double flops(const Attrs& attrs, std::span<const TensorSpec> inputs,
                 std::span<const TensorSpec> outputs) const override {
        return Geometry::make(Conv2dOptions::read(attrs), inputs[0].shape, inputs[1].shape,
                              outputs[0].shape)
            .flops();
    }

    void oracle(OracleCall& call) const override {
        const Conv2dOptions options = Conv2dOptions::read(call.attrs);
        HostArray& y = call.outputs[0];
        forward_oracle(options, call.inputs[0], call.inputs[1],
                       options.bias ? &call.inputs[2] : nullptr, y);
        if (options.activation == "identity") return;
        const Activation& f = find_activation(options.activation);
        for (double& v : y.data) v = activate(f.name, v, f.alpha, f.beta);
    }

    void oracle_backward(OracleBackwardCall& call) const override {
        const Conv2dOptions options = Conv2dOptions::read(call.attrs);
        const HostArray &x = call.inputs[0], &weight = call.inputs[1];
        HostArray dy = call.output_gradients[0];
        if (options.activation != "identity") {
            const Activation& f = find_activation(options.activation);
            HostArray before{dy.shape, {}, dy.dtype};
            forward_oracle(options, x, weight, options.bias ? &call.inputs[2] : nullptr, before);
            for (std::size_t i = 0; i < dy.data.size(); ++i)
                dy.data[i] *= activate_gradient(f.name, before.data[i], f.alpha, f.beta);
        }
        call.input_gradients.resize(call.inputs.size());
        for (std::size_t i = 0; i < call.inputs.size(); ++i) {
            call.input_gradients[i].shape = call.inputs[i].shape;
            call.input_gradients[i].dtype = call.inputs[i].dtype;
        }
        backward_data_oracle(options, dy, weight, call.input_gradients[0]);
        backward_filter_oracle(options, x, dy, call.input_gradients[1]);
        if (!options.bias) return;
        HostArray& dbias = call.input_gradients[2];
        dbias.data.assign(static_cast<std::size_t>(dbias.shape.numel()), 0.0);
        const std::int64_t channels = dy.shape[1], area = dy.shape[2] * dy.shape[3];
        for (std::size_t i = 0; i < dy.data.size(); ++i)
            dbias.data[static_cast<std::size_t>(static_cast<std::int64_t>(i) / area % channels)] +=
                dy.data[i];
    }
};

}  // namespace

std::unique_ptr<Operator> make_forward() {
    return std::make_unique<Convolution2D>();
}

}  // namespace dlprim::conv2d
