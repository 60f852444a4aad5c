// SPDX-License-Identifier: MIT
// Pooling: the maximum or mean of windows, of parts of images, or of whole images. For the gradient
// of a maximum, the forward pass also stores the position of each maximum: in its window, usually
// in one byte, where the engines of two dimensions compute it, and in its image elsewhere.
#include "ops/pooling/operator.hpp"

#include "graph/lowering.hpp"
#include "ops/pooling/windows.hpp"

#include <algorithm>

namespace dlprim::pooling {

namespace {

/// The positions that engines have of such windows.
Positions own_positions(const Windows& windows, DType dtype) {
    return windows.is_plain() && dtype != DType::f64 ? Positions::window : Positions::image;
}

std::string text_of(Positions positions) {
    return positions == Positions::window ? "window" : "image";
}

/// Those engines have all types that are not for two dimensions alone. A kernel of one size may be
/// for two.
FloatTypes types_of_engines(const Attrs& attrs) {
    const Ints dilate = attrs.ints("dilate");
    const bool plain = attrs.ints("output").empty() && attrs.ints("kernel").size() < 3 &&
                       attrs.integer("divisor_override") == 0 &&
                       std::all_of(dilate.begin(), dilate.end(), [](auto d) { return d == 1; });
    return plain ? FloatTypes::wide : FloatTypes::all;
}

/// Positions of maxima in images of two dimensions as positions in windows, or the other way round,
/// by a program. Its names are the window's first row and column, which may be in the padding (p0
/// to p3 are strides and padding), the window's width p4 and the image's p5.
ValueId convert(Graph& graph, const std::string& name, ValueId positions, const Windows& windows,
                Positions to) {
    const Axis &h = windows.h(), &w = windows.w();
    Doubles scalars;
    for (const std::int64_t number : {h.stride, w.stride, h.pad, w.pad, w.kernel, w.in})
        scalars.push_back(static_cast<double>(number));
    const std::string corner = "top = index(2) * p0 - p2; left = index(3) * p1 - p3; ";
    const std::string code =
        to == Positions::image
            ? "row = floordiv(x0, p4); y0 = (top + row) * p5 + left + (x0 - row * p4)"
            : "row = floordiv(x0, p5); y0 = (row - top) * p4 + (x0 - row * p5) - left";
    return graph.add1("Pointwise", name, {positions},
                      Attrs{{"code", corner + code},
                            {"scalars", scalars},
                            {"dtypes", Strings{std::string(name_of(windows.index_type(to)))}}});
}

/// The forward node's second output, which it gets here if it had none.
ValueId positions_of(Graph& graph, const Node& node, const TensorSpec& spec, Positions kind) {
    const NodeId id = graph.value(node.outputs[0]).producer;
    if (node.attrs.text("positions") == "none") {
        Value index;
        index.name = node.name + ":1";
        index.spec = spec;
        index.producer = id;
        const ValueId added = graph.add_value(std::move(index));
        Node& forward = graph.nodes[static_cast<std::size_t>(id)];
        forward.attrs.set("positions", text_of(kind));
        forward.outputs.push_back(added);
    }
    return graph.nodes[static_cast<std::size_t>(id)].outputs[1];
}

/// Of a global pooling.
ValueId gradient_of_all(GradientContext& context) {
    Graph& graph = context.graph;
    const Node& node = context.node;
    const ValueId dy = context.output_gradients[0], x = node.inputs[0], y = node.outputs[0];
    const Shape shape = graph.shape(x);
    const std::string at = node.name + "/backward";
    if (node.attrs.text("mode") == "avg")
        return pointwise_over(graph, at, "y0 = x0 * p0", {dy},
                              {1.0 / static_cast<double>(shape.product(2, shape.rank()))},
                              shape)[0];
    // The first of equal maxima gets the whole gradient, as in PyTorch.
    std::string place = "index(2)";
    Doubles sizes;
    Ints axes{2};
    for (int i = 3; i < shape.rank(); ++i) {
        place = cat(i > 3 ? "(" : "", place, i > 3 ? ")" : "", " * p", i - 3, " + index(", i, ")");
        sizes.push_back(static_cast<double>(shape[i]));
        axes.push_back(i);
    }
    Doubles with_end = sizes;
    with_end.push_back(static_cast<double>(shape.product(2, shape.rank())));
    ValueId first = graph.pointwise1(
        at + "/first",
        cat("y0 = min", axes_text(axes), "(x0 == x1 ? ", place, " : p", sizes.size(), ")"), {x, y},
        with_end);
    first = graph.reshape(at + "/first_shape", first, graph.shape(y));
    return pointwise_over(graph, at, cat("y0 = ", place, " == x1 ? x0 : 0"), {dy, first}, sizes,
                          shape)[0];
}

}  // namespace

FloatTypes Pooling::float_types(const Attrs& attrs) const {
    return types_of_engines(attrs);
}

std::vector<TensorSpec> Pooling::infer(const Attrs& attrs,
                                       std::span<const TensorSpec> inputs) const {
    const auto [x, dtype] = inputs[0];
    require(is_float(dtype), "input must be of a float type, got ", name_of(dtype));
    const Windows windows(attrs, x);
    std::vector<TensorSpec> result{{windows.output, dtype}};
    if (windows.positions == Positions::none) return result;
    require(!windows.average, "positions go with mode max only");
    require(!attrs.boolean("global"), "positions do not go with global; output 1 has them");
    require(
        windows.positions == Positions::image || own_positions(windows, dtype) == windows.positions,
        "only images of two dimensions, of a type of at most 32 bits and without dilation, have "
        "positions in the window; positions in the image are for all");
    result.push_back({windows.output, windows.index_type(windows.positions)});
    return result;
}

bool Pooling::expand(Graph& graph, const Node& node, std::vector<ValueId>& outputs) const {
    const auto [x, dtype] = graph.spec(node.inputs[0]);
    const Windows windows(node.attrs, x);
    if (windows.positions != Positions::image || own_positions(windows, dtype) == Positions::image)
        return false;
    Attrs attrs = node.attrs;
    attrs.set("positions", text_of(Positions::window));
    outputs = graph.add(type(), node.name, node.inputs, attrs);
    outputs[1] = convert(graph, node.name + "/planes", outputs[1], windows, Positions::image);
    return true;
}

void Pooling::gradient(GradientContext& context) const {
    const ValueId dy = context.output_gradients[0];
    Graph& graph = context.graph;
    const Node& node = context.node;
    Attrs attrs = node.attrs;
    if (attrs.boolean("global")) {
        context.input_gradients[0] = gradient_of_all(context);
        return;
    }
    const auto [x, dtype] = graph.spec(node.inputs[0]);
    const Windows windows(attrs, x);
    const Positions kind = own_positions(windows, dtype);
    std::vector<ValueId> inputs{dy};
    if (!windows.average)
        inputs.push_back(
            positions_of(graph, node, {windows.output, windows.index_type(kind)}, kind));
    Ints sizes = x.to_vector();
    sizes.erase(sizes.begin(), sizes.begin() + 2);
    attrs.erase("global");
    attrs.set("sizes", sizes).set("positions", text_of(kind));
    context.input_gradients[0] = graph.add1(backward_type, node.name + "/backward", inputs, attrs);
}

bool Pooling::lower(Graph& graph, const Node& node, std::vector<ValueId>& outputs) const {
    if (!node.attrs.boolean("global")) return false;
    const std::string method = node.attrs.text("mode") == "max" ? "max" : "mean";
    Ints axes;
    for (int i = 2; i < graph.shape(node.inputs[0]).rank(); ++i) axes.push_back(i);
    const ValueId y = graph.pointwise1(node.name, cat("y0 = ", method, axes_text(axes), "(x0)"),
                                       {node.inputs[0]});
    outputs = {graph.reshape(node.name + "/shape", y, graph.shape(node.outputs[0]))};
    return true;
}

FloatTypes PoolingBackward::float_types(const Attrs& attrs) const {
    return types_of_engines(attrs);
}

Shape PoolingBackward::input_shape(const Attrs& attrs, const Shape& dy) {
    const Ints sizes = attrs.ints("sizes");
    require(static_cast<int>(sizes.size()) == dy.rank() - 2, "sizes has ", sizes.size(),
            " entries, dy of shape ", dy, " needs one for each dimension of images");
    Shape x = dy;
    for (std::size_t i = 0; i < sizes.size(); ++i) x = x.with(static_cast<int>(i) + 2, sizes[i]);
    return x;
}

std::vector<TensorSpec> PoolingBackward::infer(const Attrs& attrs,
                                               std::span<const TensorSpec> inputs) const {
    const auto [dy, dtype] = inputs[0];
    const Shape x = input_shape(attrs, dy);
    const Windows windows(attrs, x);
    require(dy == windows.output, "dy has shape ", dy, ", an input of shape ", x, " gives ",
            windows.output);
    if (windows.average) return {{x, dtype}};
    require(inputs.size() == 2, "of a maximum takes dy and the positions");
    require(inputs[1].shape == dy, "the positions have shape ", inputs[1].shape, ", dy has ", dy);
    const DType given = inputs[1].dtype;
    if (windows.positions == Positions::window)
        require(given == windows.index_type(windows.positions), "positions in these windows are ",
                name_of(windows.index_type(windows.positions)), ", not ", name_of(given));
    else
        require(given == DType::i64 || given == DType::i32, "the positions are ", name_of(given),
                ", they must be int64 or int32");
    return {{x, dtype}};
}

bool PoolingBackward::expand(Graph& graph, const Node& node, std::vector<ValueId>& outputs) const {
    const Windows windows(node.attrs, graph.shape(node.outputs[0]));
    if (windows.average || windows.positions == Positions::window) return false;
    const Positions kind = own_positions(windows, graph.spec(node.inputs[0]).dtype);
    ValueId positions = node.inputs[1];
    if (kind == Positions::window)
        positions = convert(graph, node.name + "/windows", positions, windows, kind);
    else if (graph.spec(positions).dtype != DType::i64)
        positions = graph.add1("Cast", node.name + "/positions", {positions},
                               Attrs{{"dtype", std::string("int64")}});
    else
        return false;
    Attrs attrs = node.attrs;
    attrs.set("positions", text_of(kind));
    outputs = {graph.add1(type(), node.name, {node.inputs[0], positions}, attrs)};
    return true;
}

}  // namespace dlprim::pooling
