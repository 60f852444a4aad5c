// SPDX-License-Identifier: MIT
// ConvolutionND and TransposedConvolutionND as operators: parameters, shapes, and what they are
// made of.
#include "ops/conv_nd/operators.hpp"

#include "base/text.hpp"
#include "graph/declared_operator.hpp"
#include "ops/conv_nd/depth_taps.hpp"
#include "ops/conv_nd/geometry.hpp"

namespace dlprim::conv_nd {

namespace {

Shape joined(std::initializer_list<std::int64_t> front, const Ints& back) {
    std::vector<std::int64_t> sizes(front);
    sizes.insert(sizes.end(), back.begin(), back.end());
    return Shape(sizes);
}

/// Adds the nodes of one convolution.
class Builder {
  public:
    Builder(Graph& graph, const Node& node, const Geometry& geometry)
        : graph_(graph),
          name_(node.name),
          g_(geometry),
          x_(node.inputs[0]),
          weight_(node.inputs[1]),
          bias_(geometry.bias ? node.inputs[2] : no_value) {}

    ValueId run() {
        const Axis &d = g_.axes[0], &h = g_.axes[1], &w = g_.axes[2];
        const auto is_plain = [](const Axis& a) {
            return a.kernel == 1 && a.stride == 1 && a.pad == 0 && a.pad_end == 0 &&
                   a.large == a.small;
        };
        ValueId y;
        if (is_plain(d) && d.small == 1)
            y = planar(g_.list(&Axis::large, 2), g_.list(&Axis::small, 2), {h, w});
        else if (is_plain(h) && is_plain(w))  // rows and columns are one dimension
            y = planar({d.large, h.large * w.large}, {d.small, h.small * w.small}, {d, Axis{}});
        else
            y = g_.transposed ? transposed_volume() : volume();
        return graph_.reshape(name_ + "/result", y, g_.output());
    }

  private:
    /// A convolution of images of two dimensions with channels `in` and `out`.
    ValueId convolution(ValueId x, ValueId weight, ValueId bias, std::int64_t out,
                        const std::array<Axis, 2>& axes) {
        const auto both = [&](std::int64_t Axis::*member) {
            return Ints{axes[0].*member, axes[1].*member};
        };
        Ints pad = both(&Axis::pad);
        for (const std::int64_t p : both(&Axis::pad_end)) pad.push_back(p);
        Attrs attrs{{"channels_out", out},
                    {"groups", g_.groups},
                    {"bias", bias != no_value},
                    {"kernel", both(&Axis::kernel)},
                    {"stride", both(&Axis::stride)},
                    {"dilate", both(&Axis::dilate)},
                    {"pad", pad}};
        if (g_.transposed) attrs.set("output_pad", both(&Axis::output_pad));
        std::vector<ValueId> inputs{x, weight};
        if (bias != no_value) inputs.push_back(bias);
        return graph_.add1(g_.transposed ? "TransposedConvolution2D" : "Convolution2D", name_,
                           inputs, attrs);
    }

    /// Where two dimensions suffice: reshapes, which cost nothing.
    ValueId planar(const Ints& large, const Ints& small, const std::array<Axis, 2>& axes) {
        const Shape w = g_.weight();
        const ValueId x = graph_.reshape(name_ + "/image", x_,
                                         joined({g_.batch, g_.in}, g_.transposed ? small : large));
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
        if (bias_ == no_value) return y;
        const ValueId bias =
            graph_.reshape(name_ + "/bias_shape", bias_, Shape{1, g_.out, 1, 1, 1});
        return graph_.pointwise1(name_ + "/bias", "y0 = x0 + x1", {y, bias});
    }

    Graph& graph_;
    const std::string name_;
    const Geometry& g_;
    ValueId x_, weight_, bias_;
};

template <typename Options>
class Convolution : public DeclaredOperator<Options> {
  public:
    FloatTypes float_types(const Attrs&) const override { return FloatTypes::wide; }

    std::vector<ParamSpec> params(const Attrs& attrs,
                                  std::span<const TensorSpec> inputs) const override {
        return conv_nd::params(Geometry(attrs, inputs[0].shape, is_transposed), inputs[0].dtype);
    }
    std::vector<TensorSpec> infer(const Attrs& attrs,
                                  std::span<const TensorSpec> inputs) const override {
        const Geometry g(attrs, inputs[0].shape, is_transposed);
        const std::vector<ParamSpec> wanted = conv_nd::params(g, inputs[0].dtype);
        require(is_float(inputs[0].dtype), "input must be of a float type, got ",
                name_of(inputs[0].dtype));
        require(inputs.size() == wanted.size() + 1, "takes an input and ", wanted.size(),
                " parameters, got ", inputs.size(), " tensors");
        for (std::size_t i = 0; i < wanted.size(); ++i)
            require(inputs[i + 1] == wanted[i].spec, i == 0 ? "weight" : "bias", " is ",
                    name_of(inputs[i + 1].dtype), " ", inputs[i + 1].shape.str(), ", input ",
                    inputs[0].shape.str(), " needs ", name_of(wanted[i].spec.dtype), " ",
                    wanted[i].spec.shape.str());
        return {{g.output(), inputs[0].dtype}};
    }

    bool expand(Graph& graph, const Node& given, std::vector<ValueId>& outputs) const override {
        const Node node = given;
        const Geometry geometry(node.attrs, graph.shape(node.inputs[0]), is_transposed);
        outputs = {Builder(graph, node, geometry).run()};
        return true;
    }

    bool differentiable() const override { return true; }
    double flops(const Attrs& attrs, std::span<const TensorSpec> inputs,
                 std::span<const TensorSpec>) const override {
        return 2 * Geometry(attrs, inputs[0].shape, is_transposed).products();
    }
    void oracle(OracleCall& call) const override { conv_nd::oracle(call, is_transposed); }
    void oracle_backward(OracleBackwardCall& call) const override {
        conv_nd::oracle_backward(call, is_transposed);
    }

  private:
    static constexpr bool is_transposed = std::is_same_v<Options, ops::TransposedConvolutionND>;
};

}  // namespace

std::unique_ptr<Operator> make_convolution(bool transposed) {
    if (transposed) return std::make_unique<Convolution<ops::TransposedConvolutionND>>();
    return std::make_unique<Convolution<ops::ConvolutionND>>();
}

}  // namespace dlprim::conv_nd
