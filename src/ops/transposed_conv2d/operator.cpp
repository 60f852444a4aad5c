// SPDX-License-Identifier: MIT
// TransposedConvolution2D: the gradient of a convolution with respect to its input, as an operator
// of its own. It becomes a Convolution2DBackwardData node, then bias and activation.
#include "ops/transposed_conv2d/operator.hpp"

#include "base/text.hpp"
#include "engine/activations.hpp"
#include "graph/declared_operator.hpp"
#include "ops/transposed_conv2d/options.hpp"

#include <cmath>

namespace dlprim::transposed_conv2d {

namespace {

std::vector<ParamSpec> parameters(const TransposedOptions& options, const TensorSpec& x) {
    require(x.shape.rank() == 4, "input must be [N, C, H, W], not ", x.shape.str());
    const std::int64_t in = x.shape[1];
    require(in >= 1, "input ", x.shape.str(), " has no channels");
    require(x.shape[2] < (std::int64_t(1) << 31) && x.shape[3] < (std::int64_t(1) << 31), "input ",
            x.shape.str(), " is too large");
    require(options.channels_in < 0 || options.channels_in == in, "input ", x.shape.str(), " has ",
            in, " channels, channels_in says ", options.channels_in);
    require(in % options.groups == 0 && options.channels_out % options.groups == 0, in,
            " input and ", options.channels_out, " output channels do not divide into ",
            options.groups, " groups");
    const Shape weight{in, options.channels_out / options.groups, options.kernel[0],
                       options.kernel[1]};
    const std::int64_t fan_in = weight.product(1, 4);
    const double bound = 1 / std::sqrt(static_cast<double>(fan_in));
    ParamSpec spec{{weight, x.dtype}, Init::uniform(bound), true};
    spec.init.fan_in = fan_in;
    spec.init.fan_out = weight[0] * weight[2] * weight[3];
    std::vector<ParamSpec> params{spec};
    if (options.bias)
        params.push_back({{Shape{options.channels_out}, x.dtype}, Init::uniform(bound), true});
    return params;
}

Shape output_shape(const TransposedOptions& options, const Shape& x) {
    const std::int64_t h = options.output_size(x[2], 0), w = options.output_size(x[3], 1);
    require(h >= 1 && w >= 1, "pad [", options.pad[0], ", ", options.pad[1], ", ", options.pad[2],
            ", ", options.pad[3], "] leaves nothing of the output of input ", x.str());
    return Shape{x[0], options.channels_out, h, w};
}

class TransposedConvolution2D : public DeclaredOperator<ops::TransposedConvolution2D> {
  public:
    FloatTypes float_types(const Attrs&) const override { return FloatTypes::wide; }

    std::vector<ParamSpec> params(const Attrs& attrs,
                                  std::span<const TensorSpec> inputs) const override {
        return parameters(TransposedOptions::read(attrs), inputs[0]);
    }

    std::vector<TensorSpec> infer(const Attrs& attrs,
                                  std::span<const TensorSpec> inputs) const override {
        const TransposedOptions options = TransposedOptions::read(attrs);
        const std::vector<ParamSpec> wanted = parameters(options, inputs[0]);
        require(inputs.size() > wanted.size(), "needs ", wanted.size(), " parameters, got ",
                inputs.size() - 1);
        for (std::size_t i = 0; i < wanted.size(); ++i)
            require(inputs[i + 1] == wanted[i].spec, i == 0 ? "weight" : "bias", " is ",
                    name_of(inputs[i + 1].dtype), " ", inputs[i + 1].shape.str(), ", input ",
                    inputs[0].shape.str(), " needs ", name_of(wanted[i].spec.dtype), " ",
                    wanted[i].spec.shape.str());
        require(is_float(inputs[0].dtype), "input must be of a floating-point type, not ",
                name_of(inputs[0].dtype));
        return {{output_shape(options, inputs[0].shape), inputs[0].dtype}};
    }

    bool expand(Graph& graph, const Node& given, std::vector<ValueId>& outputs) const override {
        const Node node = given;
        const TransposedOptions options = TransposedOptions::read(node.attrs);
        const TensorSpec result = graph.spec(node.outputs[0]);
        if (result.shape.empty()) {  // no images: no engine has to know of that
            outputs = graph.add("Pointwise", node.name, {},
                                {{"code", std::string("y0 = 0")},
                                 {"shape", Ints(result.shape.to_vector())},
                                 {"dtypes", Strings{std::string(name_of(result.dtype))}}});
            return true;
        }
        if (options.activation != "identity") find_activation(options.activation);
        Attrs attrs;
        for (const char* name : {"groups", "kernel", "stride", "dilate"})
            attrs.set(name, node.attrs.items().find(name)->second);
        // output_pad adds rows that the convolution's window does not reach. With a bottom pad that
        // is smaller by output_pad, the convolution's output has the size of this operator's input.
        attrs.set("pad",
                  Ints{options.pad[0], options.pad[1], options.pad[2] - options.output_pad[0],
                       options.pad[3] - options.output_pad[1]});
        attrs.set("input_shape", output_shape(options, graph.shape(node.inputs[0])).to_vector());
        ValueId y = graph.add1("Convolution2DBackwardData", node.name,
                               {node.inputs[0], node.inputs[1]}, attrs);
        Node& made = graph.nodes[static_cast<std::size_t>(graph.value(y).producer)];
        made.name = node.name;  // the original node is removed, and this one takes its name
        made.engine = node.engine;
        made.frozen = node.frozen;
        if (options.bias) {
            const ValueId bias = graph.reshape(node.name + "/bias_shape", node.inputs[2],
                                               Shape{1, options.channels_out, 1, 1});
            y = graph.pointwise1(node.name + "/bias", "y0 = x0 + x1", {y, bias});
        }
        if (options.activation != "identity")
            y = graph.add1("Activation", node.name + "/activation", {y},
                           {{"activation", options.activation}});
        outputs = {y};
        return true;
    }

    bool differentiable() const override { return true; }

    double flops(const Attrs& attrs, std::span<const TensorSpec> inputs,
                 std::span<const TensorSpec>) const override {
        const TransposedOptions options = TransposedOptions::read(attrs);
        return 2.0 * static_cast<double>(inputs[0].shape.numel()) *
               static_cast<double>(options.channels_out / options.groups) *
               static_cast<double>(options.kernel[0] * options.kernel[1]);
    }

    void oracle(OracleCall& call) const override {
        const TransposedOptions options = TransposedOptions::read(call.attrs);
        std::vector<double> y = linear(options, call.inputs);
        call.outputs[0].shape = output_shape(options, call.inputs[0].shape);
        if (options.activation != "identity") {
            const Activation& f = find_activation(options.activation);
            for (double& v : y) v = activate(f.name, v, f.alpha, f.beta);
        }
        call.outputs[0].data = std::move(y);
    }

    void oracle_backward(OracleBackwardCall& call) const override {
        const TransposedOptions options = TransposedOptions::read(call.attrs);
        std::vector<double> dy = call.output_gradients[0].data;
        if (options.activation != "identity") {
            const Activation& f = find_activation(options.activation);
            const std::vector<double> before = linear(options, call.inputs);
            for (std::size_t i = 0; i < dy.size(); ++i)
                dy[i] *= activate_gradient(f.name, before[i], f.alpha, f.beta);
        }
        call.input_gradients.resize(call.inputs.size());
        for (std::size_t i = 0; i < call.inputs.size(); ++i) {
            HostArray& to = call.input_gradients[i];
            to.shape = call.inputs[i].shape;
            to.dtype = call.inputs[i].dtype;
            to.data.assign(static_cast<std::size_t>(to.shape.numel()), 0.0);
        }
        const std::vector<double>&x = call.inputs[0].data, &weight = call.inputs[1].data;
        std::vector<double>&dx = call.input_gradients[0].data,
        &dweight = call.input_gradients[1].data;
        for_each_product(options, call.inputs[0].shape,
                         [&](std::size_t ix, std::size_t iw, std::size_t iy) {
                             dx[ix] += dy[iy] * weight[iw];
                             dweight[iw] += dy[iy] * x[ix];
                         });
        if (!options.bias) return;
        const Shape shape = output_shape(options, call.inputs[0].shape);
        const auto area = static_cast<std::size_t>(shape[2] * shape[3]);
        for (std::size_t i = 0; i < dy.size(); ++i)
            call.input_gradients[2].data[i / area % static_cast<std::size_t>(shape[1])] += dy[i];
    }

  private:
    // Calls visit(x index, weight index, y index) for every product.
    template <typename Visit>
    static void for_each_product(const TransposedOptions& options, const Shape& x,
                                 const Visit& visit) {
        const Shape y = output_shape(options, x);
        const std::int64_t kh = options.kernel[0], kw = options.kernel[1];
        const std::int64_t in_g = x[1] / options.groups, out_g = y[1] / options.groups;
        for (std::int64_t n = 0; n < x[0]; ++n)
            for (std::int64_t c = 0; c < x[1]; ++c)
                for (std::int64_t o = 0; o < out_g; ++o)
                    for (std::int64_t at = 0; at < x[2] * x[3]; ++at)
                        for (std::int64_t k = 0; k < kh * kw; ++k) {
                            const std::int64_t oy = at / x[3] * options.stride[0] - options.pad[0] +
                                                    k / kw * options.dilate[0];
                            const std::int64_t ox = at % x[3] * options.stride[1] - options.pad[1] +
                                                    k % kw * options.dilate[1];
                            if (oy < 0 || oy >= y[2] || ox < 0 || ox >= y[3]) continue;
                            const std::int64_t channel = c / in_g * out_g + o;
                            visit(static_cast<std::size_t>((n * x[1] + c) * x[2] * x[3] + at),
                                  static_cast<std::size_t>((c * out_g + o) * kh * kw + k),
                                  static_cast<std::size_t>(
                                      ((n * y[1] + channel) * y[2] + oy) * y[3] + ox));
                        }
    }

    // The output before its activation.
    static std::vector<double> linear(const TransposedOptions& options,
                                      const std::vector<HostArray>& inputs) {
        const Shape shape = output_shape(options, inputs[0].shape);
        std::vector<double> y(static_cast<std::size_t>(shape.numel()), 0.0);
        if (options.bias) {
            const auto area = static_cast<std::size_t>(shape[2] * shape[3]);
            for (std::size_t i = 0; i < y.size(); ++i)
                y[i] = inputs[2].data[i / area % static_cast<std::size_t>(shape[1])];
        }
        for_each_product(options, inputs[0].shape,
                         [&](std::size_t ix, std::size_t iw, std::size_t iy) {
                             y[iy] += inputs[0].data[ix] * inputs[1].data[iw];
                         });
        return y;
    }
};

}  // namespace

std::unique_ptr<Operator> make_operator() {
    return std::make_unique<TransposedConvolution2D>();
}

}  // namespace dlprim::transposed_conv2d
