// SPDX-License-Identifier: MIT
// Convolution and TransposedConvolution as operators: parameters, shapes, and what they are made
// of.
#include "ops/conv2d/operators.hpp"

#include "base/text.hpp"
#include "engine/activations.hpp"
#include "graph/declared_operator.hpp"
#include "graph/passes/passes.hpp"
#include "ops/conv2d/options.hpp"
#include "ops/conv2d/sizes.hpp"
#include "ops/conv2d/volume/depth_taps.hpp"

namespace dlprim::conv2d {

namespace {

/// Adds the nodes of one convolution.
class Builder {
  public:
    Builder(Graph& graph, const Node& node, const Sizes& sizes)
        : graph_(graph),
          name_(node.name),
          attrs_(node.attrs),
          g_(sizes),
          x_(node.inputs[0]),
          weight_(node.inputs[1]),
          bias_(sizes.bias ? node.inputs[2] : no_value) {}

    ValueId run() {
        const Axis &d = g_.axes[0], &h = g_.axes[1], &w = g_.axes[2];
        const auto is_plain = [](const Axis& a) {
            return a.kernel == 1 && a.stride == 1 && a.pad == 0 && a.pad_end == 0 &&
                   a.large == a.small;
        };
        ValueId y;
        if (is_plain(d) && d.small == 1)
            y = planar({h, w});
        else if (is_plain(h) && is_plain(w))  // rows and columns are one dimension
            y = planar({d, Axis{h.large * w.large, h.small * w.small}});
        else
            y = g_.transposed ? transposed_volume() : volume();
        return graph_.reshape(name_ + "/result", y, g_.output());
    }

  private:
    /// A convolution of images of two dimensions with `out` channels, or a transposed one.
    ValueId convolution(ValueId x, ValueId weight, ValueId bias, std::int64_t out,
                        const std::array<Axis, 2>& axes) {
        const auto both = [&](std::int64_t Axis::*member) {
            return Ints{axes[0].*member, axes[1].*member};
        };
        Ints pad = both(&Axis::pad), end = both(&Axis::pad_end);
        // An output_pad adds rows that the window does not reach. With a bottom pad that is smaller
        // by it, the convolution whose gradient this is has an output of the size of x.
        for (std::size_t i = 0; i < 2; ++i) pad.push_back(end[i] - axes[i].output_pad);
        Attrs attrs{{"groups", g_.groups}, {"pad", pad}};
        // Options of images stay as they are written: tunings are found by them.
        const auto set = [&](const char* name, Ints values) {
            attrs.set(name, g_.dims == 2 ? attrs_.ints(name) : std::move(values));
        };
        set("kernel", both(&Axis::kernel));
        set("stride", both(&Axis::stride));
        set("dilate", both(&Axis::dilate));
        if (g_.transposed) {
            attrs.set("input_shape", Ints{graph_.shape(x)[0], out, axes[0].large, axes[1].large});
            return with_bias(graph_.add1(backward_data_type, name_, {x, weight}, attrs), bias);
        }
        set("pad", pad);
        const std::int64_t in = attrs_.integer("channels_in");
        attrs.set("channels_out", out).set("channels_in", in < 0 ? in : graph_.shape(x)[1]);
        attrs.set("bias", bias != no_value);
        std::vector<ValueId> inputs{x, weight};
        if (bias != no_value) inputs.push_back(bias);
        return graph_.add1("Convolution", name_, inputs, attrs);
    }

    ValueId with_bias(ValueId y, ValueId bias) {
        if (bias == no_value) return y;
        Ints sizes(static_cast<std::size_t>(graph_.shape(y).rank()), 1);
        sizes[1] = g_.out;
        const ValueId column = graph_.reshape(name_ + "/bias_shape", bias, Shape(sizes));
        return graph_.pointwise1(name_ + "/bias", "y0 = x0 + x1", {y, column});
    }

    /// Where two dimensions suffice: reshapes, which cost nothing.
    ValueId planar(const std::array<Axis, 2>& axes) {
        const Shape w = g_.weight();
        const auto size = g_.transposed ? &Axis::small : &Axis::large;
        const ValueId x = graph_.reshape(name_ + "/image", x_,
                                         Shape{g_.batch, g_.in, axes[0].*size, axes[1].*size});
        const ValueId weight = graph_.reshape(name_ + "/weight", weight_,
                                              Shape{w[0], w[1], axes[0].kernel, axes[1].kernel});
        return convolution(x, weight, bias_, g_.out, axes);
    }

    Attrs taps(std::int64_t size) const {
        const Axis& d = g_.axes[0];
        return {{"kernel", d.kernel},
                {"stride", d.stride},
                {"pad", d.pad},
                {"dilate", d.dilate},
                {"size", size}};
    }
    ValueId swapped(const std::string& name, ValueId value, const Shape& shape) {
        const ValueId five = graph_.reshape(name + "/volume", value, shape);
        return graph_.add1("Transpose", name, {five}, Attrs{{"dims", Ints{0, 2, 1, 3, 4}}});
    }

    ValueId volume() {
        const auto& [d, h, w] = g_.axes;
        const Shape weight = g_.weight();
        const ValueId x = graph_.add1(taps_type, name_ + "/taps", {x_}, taps(d.small));
        const ValueId images = graph_.reshape(
            name_ + "/images", x, Shape{g_.batch * d.small, g_.in * d.kernel, h.large, w.large});
        const ValueId flat = graph_.reshape(
            name_ + "/weight", weight_, Shape{g_.out, weight[1] * d.kernel, h.kernel, w.kernel});
        const ValueId y = convolution(images, flat, bias_, g_.out, {h, w});
        return swapped(name_ + "/order", y, Shape{g_.batch, d.small, g_.out, h.small, w.small});
    }

    ValueId transposed_volume() {
        const auto& [d, h, w] = g_.axes;
        const Shape weight = g_.weight();
        const ValueId x =
            swapped(name_ + "/order", x_, Shape{g_.batch, g_.in, d.small, h.small, w.small});
        const ValueId images = graph_.reshape(name_ + "/images", x,
                                              Shape{g_.batch * d.small, g_.in, h.small, w.small});
        const ValueId flat = graph_.reshape(name_ + "/weight", weight_,
                                            Shape{g_.in, weight[1] * d.kernel, h.kernel, w.kernel});
        const ValueId parts = convolution(images, flat, no_value, g_.out * d.kernel, {h, w});
        const ValueId apart = graph_.reshape(
            name_ + "/parts", parts, Shape{g_.batch, d.small, g_.out, d.kernel, h.large, w.large});
        const ValueId y = graph_.add1(taps_backward_type, name_ + "/sum", {apart}, taps(d.large));
        return with_bias(y, bias_);
    }

    Graph& graph_;
    const std::string name_;
    const Attrs& attrs_;
    const Sizes& g_;
    ValueId x_, weight_, bias_;
};

template <typename Options>
class Convolution : public DeclaredOperator<Options> {
  public:
    FloatTypes float_types(const Attrs&) const override { return FloatTypes::wide; }

    std::vector<ParamSpec> params(const Attrs& attrs,
                                  std::span<const TensorSpec> inputs) const override {
        for (const std::int64_t pad : attrs.ints("pad"))
            require(pad >= 0, "pad must be at least 0, not ", pad);
        return conv2d::params(Sizes(attrs, inputs[0].shape, is_transposed), inputs[0].dtype);
    }
    std::vector<TensorSpec> infer(const Attrs& attrs,
                                  std::span<const TensorSpec> inputs) const override {
        const auto& [shape, dtype] = inputs[0];
        const Sizes g(attrs, shape, is_transposed);
        const std::vector<ParamSpec> wanted = conv2d::params(g, dtype);
        require(is_float(dtype), "input must be of a floating-point type, not ", name_of(dtype));
        require(inputs.size() > wanted.size(), "needs ", wanted.size(), " parameters, got ",
                inputs.size() - 1);
        for (std::size_t i = 0; i < wanted.size(); ++i) {
            const TensorSpec &given = inputs[i + 1], &spec = wanted[i].spec;
            const bool fits =
                given.dtype == dtype || (has_16_bits(dtype) && given.dtype == DType::f32);
            require(given.shape == spec.shape && fits, i == 0 ? "weight" : "bias", " is ",
                    name_of(given.dtype), " ", given.shape, ", input ", shape, " needs ",
                    name_of(spec.dtype), " ", spec.shape);
        }
        return {{g.output(), dtype}};
    }

    bool expand(Graph& graph, const Node& given, std::vector<ValueId>& outputs) const override {
        const Node node = given;
        const TensorSpec result = graph.spec(node.outputs[0]);
        if (result.shape.empty()) {  // no images: no engine has to know of that
            outputs = graph.add("Pointwise", node.name, {},
                                {{"code", std::string("y0 = 0")},
                                 {"shape", Ints(result.shape.to_vector())},
                                 {"dtypes", Strings{std::string(name_of(result.dtype))}}});
            return true;
        }
        const std::string activation = find_activation(node.attrs.text("activation")).name;
        const bool has_engines = !is_transposed && result.shape.rank() == 4;
        if (has_engines && activation == "identity") return false;
        const Sizes sizes(node.attrs, graph.shape(node.inputs[0]), is_transposed);
        ValueId y = Builder(graph, node, sizes).run();
        if (activation != "identity")
            y = graph.add1("Activation", node.name + "/activation", {y},
                           {{"activation", activation}});
        outputs = {y};
        return true;
    }

    std::string_view problem_type() const override {
        return is_transposed ? Options::type : forward_type;
    }
    bool is_linear_layer() const override { return !is_transposed; }
    void gradient(GradientContext& context) const override {
        linear_gradients(context, Part::output);
        const Node& node = context.node;
        const ValueId dy = context.output_gradients[0];
        if (dy == no_value || node.inputs.size() < 3 || !context.wanted[2]) return;
        const std::string name = node.name + "/backward_bias";
        const ValueId sum = context.graph.pointwise1(name, "y0 = sum[0,2,3](x0)", {dy});
        context.input_gradients[2] =
            context.graph.reshape(name + "/reshape", sum, context.graph.shape(node.inputs[2]));
    }

    double flops(const Attrs& attrs, std::span<const TensorSpec> inputs,
                 std::span<const TensorSpec>) const override {
        return 2 * Sizes(attrs, inputs[0].shape, is_transposed).products();
    }
    void oracle(OracleCall& call) const override { conv2d::oracle(call, is_transposed); }
    void oracle_backward(OracleBackwardCall& call) const override {
        conv2d::oracle_backward(call, is_transposed);
    }

  private:
    static constexpr bool is_transposed = std::is_same_v<Options, ops::TransposedConvolution>;
};

}  // namespace

std::unique_ptr<Operator> make_convolution(bool transposed) {
    if (transposed) return std::make_unique<Convolution<ops::TransposedConvolution>>();
    return std::make_unique<Convolution<ops::Convolution>>();
}

}  // namespace dlprim::conv2d
