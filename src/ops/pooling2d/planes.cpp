// SPDX-License-Identifier: MIT
// MaxPooling2D and its gradient, whose second output and input are the maxima's positions in the
// planes, as PyTorch's max_pool2d_with_indices has them. Pooling2D and its engines compute with
// positions in the windows, which are a byte each; a Pointwise converts them.
#include "base/text.hpp"
#include "graph/declared_operator.hpp"
#include "graph/oracle_loops.hpp"
#include "ops/pooling2d/operator.hpp"

namespace dlprim::pooling2d {

namespace {

/// The same windows as options of Pooling2D.
Attrs windows(const Attrs& attrs) {
    return Attrs{{"mode", std::string("max")},
                 {"kernel", attrs.ints("kernel")},
                 {"stride", attrs.ints("stride")},
                 {"pad", attrs.ints("pad")},
                 {"ceil_mode", attrs.boolean("ceil_mode")},
                 {"count_include_pad", false},
                 {"return_indices", true}};
}

/// The names of programs: the window's first row and column, which may be in the padding (p0 to p3
/// are strides and padding), its width p4 and the plane's p5.
constexpr const char* corner = "top = index(2) * p0 - p2; left = index(3) * p1 - p3; ";

Doubles numbers(const Options& options, std::int64_t width) {
    Doubles all;
    for (const std::int64_t number : {options.stride[0], options.stride[1], options.pad[0],
                                      options.pad[1], options.kernel[1], width})
        all.push_back(static_cast<double>(number));
    return all;
}

ValueId convert(Graph& graph, const std::string& name, const std::string& code, ValueId positions,
                const Doubles& scalars, DType dtype) {
    return graph.add1("Pointwise", name, {positions},
                      Attrs{{"code", corner + code},
                            {"scalars", scalars},
                            {"dtypes", Strings{std::string(name_of(dtype))}}});
}

class MaxPooling2D final : public DeclaredOperator<ops::MaxPooling2D> {
  public:
    int outputs(const Attrs&) const override { return 2; }
    std::vector<TensorSpec> infer(const Attrs& attrs,
                                  std::span<const TensorSpec> inputs) const override {
        const Shape y = Options(windows(attrs)).output_shape(inputs[0].shape);
        return {{y, inputs[0].dtype}, {y, DType::i64}};
    }
    bool expand(Graph& graph, const Node& node, std::vector<ValueId>& outputs) const override {
        const Attrs attrs = windows(node.attrs);
        const std::int64_t width = graph.shape(node.inputs[0])[3];
        outputs = graph.add("Pooling2D", node.name, node.inputs, attrs);
        outputs[1] = convert(graph, node.name + "/planes",
                             "row = floordiv(x0, p4); "
                             "y0 = (top + row) * p5 + left + (x0 - row * p4)",
                             outputs[1], numbers(Options(attrs), width), DType::i64);
        return true;
    }
    void oracle(OracleCall& call) const override {
        const HostArray& x = call.inputs[0];
        const Attrs attrs = windows(call.attrs);
        const Options options(attrs);
        OracleCall inner{attrs, call.training, call.inputs, std::vector<HostArray>(2),
                         {},    call.seed,     call.step};
        OperatorRegistry::instance().get("Pooling2D").oracle(inner);
        call.outputs = inner.outputs;
        HostArray& planes = call.outputs[1];
        planes.dtype = DType::i64;
        for_each_position(planes.shape, [&](const std::vector<std::int64_t>& at, std::size_t i) {
            const auto position = static_cast<std::int64_t>(planes.data[i]);
            const std::int64_t row =
                at[2] * options.stride[0] - options.pad[0] + position / options.kernel[1];
            const std::int64_t column =
                at[3] * options.stride[1] - options.pad[1] + position % options.kernel[1];
            planes.data[i] = static_cast<double>(row * x.shape[3] + column);
        });
    }
    void oracle_backward(OracleBackwardCall& call) const override {
        const Attrs attrs = windows(call.attrs);
        OracleBackwardCall inner{attrs,
                                 call.training,
                                 call.inputs,
                                 call.outputs,
                                 call.output_gradients,
                                 call.input_gradients,
                                 call.seed,
                                 call.step,
                                 {}};
        OperatorRegistry::instance().get("Pooling2D").oracle_backward(inner);
        call.input_gradients = inner.input_gradients;
    }
};

/// Inputs: dy and the maxima's positions in the planes. Output: dx.
class MaxPooling2DBackward final : public DeclaredOperator<ops::MaxPooling2DBackward> {
  public:
    int min_inputs() const override { return 2; }
    int max_inputs() const override { return 2; }
    std::vector<TensorSpec> infer(const Attrs& attrs,
                                  std::span<const TensorSpec> inputs) const override {
        const Shape& dy = inputs[0].shape;
        const Shape x = input_shape(attrs, dy);
        const Shape y = Options(windows(attrs)).output_shape(x);
        require(dy == y, "dy has shape ", dy.str(), ", an input of shape ", x.str(), " gives ",
                y.str());
        require(inputs[1].shape == dy, "the positions have shape ", inputs[1].shape.str(),
                ", dy has ", dy.str());
        require(inputs[1].dtype == DType::i64 || inputs[1].dtype == DType::i32,
                "the positions are ", name_of(inputs[1].dtype), ", they must be int64 or int32");
        return {{x, inputs[0].dtype}};
    }
    bool expand(Graph& graph, const Node& node, std::vector<ValueId>& outputs) const override {
        Attrs attrs = windows(node.attrs);
        const Shape x = graph.shape(node.outputs[0]);
        const Options options(attrs);
        const ValueId positions =
            convert(graph, node.name + "/windows",
                    "row = floordiv(x0, p5); y0 = (row - top) * p4 + (x0 - row * p5) - left",
                    node.inputs[1], numbers(options, x[3]), options.index_type());
        attrs.set("return_indices", false).set("sizes", x.to_vector());
        outputs = {graph.add1("Pooling2DBackward", node.name, {node.inputs[0], positions}, attrs)};
        return true;
    }
    void oracle(OracleCall& call) const override {
        const HostArray &dy = call.inputs[0], &positions = call.inputs[1];
        const Shape shape = input_shape(call.attrs, dy.shape);
        HostArray& dx = make_array(call.outputs, 0, shape, dy.dtype);
        const std::int64_t area = shape[2] * shape[3], each = dy.shape[2] * dy.shape[3];
        for (std::size_t i = 0; i < dy.data.size(); ++i) {
            const auto plane = static_cast<std::int64_t>(i) / each;
            const auto at = static_cast<std::int64_t>(positions.data[i]);
            dx.data[static_cast<std::size_t>(plane * area + at)] += dy.data[i];
        }
    }

  private:
    static Shape input_shape(const Attrs& attrs, const Shape& dy) {
        const Ints sizes = attrs.ints("sizes");
        require(sizes.size() == 2, "sizes has ", sizes.size(), " entries, it is [height, width]");
        require(dy.rank() == 4, "dy ", dy.str(), " is not [N, C, H, W]");
        return Shape{dy[0], dy[1], sizes[0], sizes[1]};
    }
};

}  // namespace

std::unique_ptr<Operator> make_with_planes() {
    return std::make_unique<MaxPooling2D>();
}

std::unique_ptr<Operator> make_backward_of_planes() {
    return std::make_unique<MaxPooling2DBackward>();
}

}  // namespace dlprim::pooling2d
