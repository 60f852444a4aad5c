// SPDX-License-Identifier: MIT
// What exporters write in pieces becomes one operator, and stays apart where a piece has another
// reader.
#include "onnx/support.hpp"

#include <cmath>

using namespace onnx_test;

namespace {

Model model_of(const std::vector<std::string>& nodes, const std::vector<std::string>& constants) {
    Model model{.nodes = nodes,
                .inputs = {value("x", {2, 2})},
                .outputs = {value("y", {2, 2})},
                .initializers = constants};
    return model;
}

const Values points{-4, -1, 0.5, 5};

/// The model is one Activation of this name, with its values.
void check_activation(const Model& model, const std::string& name, double (*function)(double)) {
    dlprim::Net net = open(model);
    CHECK(types(net) == "Activation");
    CHECK(has(dlprim::describe(net).operators.at(0).options, "\"" + name + "\""));
    const Values y = run(net, {{"x", points}});
    for (std::size_t i = 0; i < points.size(); ++i)
        CHECK(y[i] == Approx(function(points[i])).margin(1e-6));
}

double hard_sigmoid(double x) {
    return std::fmin(std::fmax(x / 6 + 0.5, 0), 1);
}

}  // namespace

TEST_CASE("silu is x sigmoid(x)") {
    const Model model =
        model_of({node("Sigmoid", {"x"}, {"s"}), node("Mul", {"x", "s"}, {"y"})}, {});
    check_activation(model, "silu", [](double x) { return x / (1 + std::exp(-x)); });
}

TEST_CASE("hardsigmoid and hardswish by relu6") {
    const std::vector<std::string> constants{floats("three", {}, {3}), floats("low", {}, {0}),
                                             floats("six", {}, {6})};
    std::vector<std::string> nodes{node("Add", {"x", "three"}, {"shifted"}),
                                   node("Clip", {"shifted", "low", "six"}, {"clipped"}),
                                   node("Div", {"clipped", "six"}, {"y"})};
    check_activation(model_of(nodes, constants), "hardsigmoid", hard_sigmoid);
    nodes[2] = node("Mul", {"clipped", "x"}, {"product"});
    nodes.push_back(node("Div", {"product", "six"}, {"y"}));
    check_activation(model_of(nodes, constants), "hardswish",
                     [](double x) { return x * hard_sigmoid(x); });
}

TEST_CASE("gelu by erf, its factors in any order") {
    const std::vector<std::string> constants{floats("root", {}, {std::sqrt(2.0f)}),
                                             floats("one", {}, {1}), floats("half", {}, {0.5})};
    const std::vector<std::string> first{node("Div", {"x", "root"}, {"scaled"}),
                                         node("Erf", {"scaled"}, {"erf"}),
                                         node("Add", {"erf", "one"}, {"more"})};
    const auto gelu = [](double x) { return x * 0.5 * (1 + std::erf(x / std::sqrt(2.0))); };
    auto nodes = first;
    nodes.push_back(node("Mul", {"x", "more"}, {"product"}));
    nodes.push_back(node("Mul", {"product", "half"}, {"y"}));
    check_activation(model_of(nodes, constants), "gelu", gelu);
    nodes = first;
    nodes.push_back(node("Mul", {"x", "half"}, {"halved"}));
    nodes.push_back(node("Mul", {"more", "halved"}, {"y"}));
    check_activation(model_of(nodes, constants), "gelu", gelu);
}

TEST_CASE("a piece that is read elsewhere stays") {
    Model model = model_of({node("Sigmoid", {"x"}, {"s"}), node("Mul", {"x", "s"}, {"y"})}, {});
    model.outputs.push_back(value("s", {2, 2}));
    CHECK(types(open(model)) == "Activation Elementwise");
}

namespace {

/// x [2, 3, 8] through these nodes, compared with rows that are normalised here, times w plus b.
void check_layer_norm(const std::vector<std::string>& nodes, bool affine) {
    Model model{.nodes = nodes};
    const Values w{1, 2, -1, 0.5, 3, 1, 1, -2}, b{0, 1, 2, 3, -1, 0, 0.5, 4};
    model.initializers = {floats("w", {8}, w),        floats("b", {8}, b),
                          floats("eps", {}, {1e-5f}), floats("two", {}, {2}),
                          floats("one", {}, {1}),     integers("axes", {-1})};
    model.inputs = {value("x", {2, 3, 8})};
    model.outputs = {value("y", {2, 3, 8})};
    dlprim::Net net = open(model);
    CHECK(types(net) == "LayerNorm");
    Values x(48);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::sin(static_cast<float>(i * i));
    const Values y = run(net, {{"x", x}});
    for (std::size_t row = 0; row < x.size(); row += 8) {
        double mean = 0, variance = 0;
        for (std::size_t i = row; i < row + 8; ++i) mean += x[i] / 8.0;
        for (std::size_t i = row; i < row + 8; ++i) variance += (x[i] - mean) * (x[i] - mean) / 8;
        for (std::size_t i = 0; i < 8; ++i) {
            const double plain = (x[row + i] - mean) / std::sqrt(variance + 1e-5);
            CHECK(y[row + i] == Approx(affine ? plain * w[i] + b[i] : plain).margin(1e-5));
        }
    }
}

std::string mean_node(const std::string& of, const std::string& to) {
    return node("ReduceMean", {of}, {to}, {{attribute("axes", Sizes{-1})}});
}

}  // namespace

TEST_CASE("a layer norm in pieces, as PyTorch writes it") {
    std::vector<std::string> nodes{mean_node("x", "mean"),
                                   node("Sub", {"x", "mean"}, {"d"}),
                                   node("Pow", {"d", "two"}, {"square"}),
                                   mean_node("square", "variance"),
                                   node("Add", {"variance", "eps"}, {"more"}),
                                   node("Sqrt", {"more"}, {"deviation"}),
                                   node("Div", {"d", "deviation"}, {"y"})};
    check_layer_norm(nodes, false);
    nodes.back() = node("Div", {"d", "deviation"}, {"normal"});
    nodes.push_back(node("Mul", {"normal", "w"}, {"scaled"}));
    nodes.push_back(node("Add", {"b", "scaled"}, {"y"}));
    check_layer_norm(nodes, true);
}

TEST_CASE("a layer norm in pieces, as TensorFlow writes it") {
    check_layer_norm(
        {mean_node("x", "mean"), node("Sub", {"x", "mean"}, {"d"}),
         node("Mul", {"d", "d"}, {"square"}), mean_node("square", "variance"),
         node("Add", {"variance", "eps"}, {"more"}), node("Sqrt", {"more"}, {"deviation"}),
         node("Reciprocal", {"deviation"}, {"inverse"}), node("Mul", {"inverse", "w"}, {"s"}),
         node("Mul", {"mean", "s"}, {"shifted"}), node("Sub", {"b", "shifted"}, {"rest"}),
         node("Mul", {"x", "s"}, {"product"}), node("Add", {"product", "rest"}, {"y"})},
        true);
}

TEST_CASE("a batch norm as Sub, Mul and Add goes into the convolution") {
    Model model{
        .nodes = {node("Conv", {"x", "w"}, {"c"}), node("Sub", {"c", "mean"}, {"d"}),
                  node("Mul", {"scale", "d"}, {"s"}), node("Add", {"s", "shift"}, {"a"}),
                  node("Div", {"a", "two"}, {"y"})},
        .inputs = {value("x", {1, 1, 1, 2})},
        .outputs = {value("y", {1, 2, 1, 2})},
        .initializers = {floats("w", {2, 1, 1, 1}, {1, 2}), floats("mean", {1, 2, 1, 1}, {1, -1}),
                         floats("scale", {2, 1, 1}, {3, 5}), floats("shift", {2, 1, 1}, {7, 9}),
                         floats("two", {}, {2})}};
    dlprim::Net net = open(model);
    CHECK(types(net) == "Convolution");
    // ((w x - mean) scale + shift) / 2
    CHECK(run(net, {{"x", {1, 2}}}) == Values{3.5, 5, 12, 17});
    model.outputs.push_back(value("d", {1, 2, 1, 2}));
    CHECK(types(open(model)) ==
          "Convolution Parameter Elementwise Parameter Elementwise Pointwise");
}

TEST_CASE("a scale and a bias go into a product, one of another axis does not") {
    Model model{.nodes = {node("MatMul", {"x", "w"}, {"p"}), node("Mul", {"p", "scale"}, {"s"}),
                          node("Add", {"s", "bias"}, {"y"})},
                .inputs = {value("x", {1, 2, 2})},
                .outputs = {value("y", {1, 2, 2})},
                .initializers = {floats("w", {2, 2}, {1, 2, 3, 4}), floats("scale", {2}, {2, 3}),
                                 floats("bias", {2}, {10, 20})}};
    dlprim::Net net = open(model);
    CHECK(types(net) == "Reshape InnerProduct Reshape");
    CHECK(run(net, {{"x", {1, 0, 1, 1}}}) == Values{12, 26, 18, 38});
    model.initializers[1] = floats("scale", {2, 1}, {2, 3});  // a number for each row
    CHECK(run(model, {{"x", {1, 0, 1, 1}}}) == Values{12, 24, 22, 38});
}

TEST_CASE("a pair of QuantizeLinear and DequantizeLinear is one expression") {
    Model model =
        model_of({node("QuantizeLinear", {"x", "scale", "zero"}, {"q"}),
                  node("DequantizeLinear", {"q", "scale", "zero"}, {"y"})},
                 {floats("scale", {}, {0.5}), tensor("zero", {}, 3, std::string(1, '\x05'))});
    dlprim::Net net = open(model);
    CHECK(has(types(net), "Pointwise"));
    CHECK(types(net).find("Pointwise") == types(net).rfind("Pointwise"));
    // In steps of a half, from -133 halves to 122.
    CHECK(run(net, {{"x", {0.3f, -100, 100, 1.6f}}}) == Values{0.5, -66.5, 61, 1.5});
    model.nodes[1] = node("DequantizeLinear", {"q", "other", "zero"}, {"y"});
    model.initializers.push_back(floats("other", {}, {0.25}));
    CHECK(run(model, {{"x", {0.3f, -100, 100, 1.6f}}}) == Values{0.25, -33.25, 30.5, 0.75});
}

TEST_CASE("a constant weight through Transpose is the weight") {
    Model model;
    // TensorFlow's order [height, width, in, out], more elements than are folded by an oracle.
    const std::int64_t in = 96, out = 80;
    Values weight(static_cast<std::size_t>(9 * in * out), 0.0f);
    weight[static_cast<std::size_t>((4 * in + 1) * out + 2)] = 3;  // the middle, from 1 to 2
    model.nodes = {node("Transpose", {"w"}, {"wt"}, {{attribute("perm", Sizes{3, 2, 0, 1})}}),
                   node("Conv", {"x", "wt"}, {"y"})};
    model.initializers = {floats("w", {3, 3, in, out}, weight)};
    model.inputs = {value("x", {1, in, 3, 3})};
    model.outputs = {value("y", {1, out, 1, 1})};
    dlprim::Net net = open(model);
    CHECK(types(net) == "Convolution");
    Values x(static_cast<std::size_t>(in * 9), 0.0f);
    x[9 + 4] = 2;
    const Values y = run(net, {{"x", x}});
    for (std::size_t i = 0; i < y.size(); ++i) CHECK(y[i] == (i == 2 ? 6.0f : 0.0f));
}

namespace {

/// The image x [1, 1, 4, 4], whose last row and column get a neighbour of this value, through nodes
/// that read it as "padded" and make "y" [1, 1, 2, 2] by windows of 3x3 in steps of 2.
Model padded_model(const std::vector<std::string>& nodes, float filling = 0,
                   const std::string& image = "x") {
    Model model{.nodes = nodes};
    model.nodes.insert(model.nodes.end() - 1, node("Pad", {image, "pads", "filling"}, {"padded"}));
    model.initializers = {integers("pads", {0, 0, 0, 0, 0, 0, 1, 1}),
                          floats("filling", {}, {filling}),
                          floats("w", {1, 1, 3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9})};
    model.inputs = {value("x", {1, 1, 4, 4})};
    model.outputs = {value("y", {1, 1, 2, 2})};
    return model;
}

std::string windows(const std::string& type, const std::vector<std::string>& inputs) {
    return node(type, inputs, {"y"},
                {{attribute("kernel_shape", Sizes{3, 3}), attribute("strides", Sizes{2, 2})}});
}

const Values image{1, -2, 3, -4, 5, -6, 7, -8, 9, -10, 11, -12, -13, 14, -15, -16};

}  // namespace

TEST_CASE("zeros around an image are padding of the convolution or pooling that reads it") {
    dlprim::Net net = open(padded_model({windows("Conv", {"padded", "w"})}));
    CHECK(types(net) == "Convolution");
    CHECK(run(net, {{"x", image}}) == Values{120, -36, -50, -153});
    net = open(padded_model({windows("AveragePool", {"padded"})}));
    CHECK(types(net) == "Pooling");
    const Values y = run(net, {{"x", image}});
    const Values sums{18, -3, -4, -32};
    for (std::size_t i = 0; i < y.size(); ++i) CHECK(y[i] == Approx(sums[i] / 9));
    const std::string relu = node("Relu", {"x"}, {"r"});
    net = open(padded_model({relu, windows("MaxPool", {"padded"})}, 0, "r"));
    CHECK(types(net) == "Activation Pooling");
    CHECK(run(net, {{"x", image}}) == Values{11, 11, 14, 11});
}

TEST_CASE("padding stays where its own values would be other ones") {
    CHECK(types(open(padded_model({windows("Conv", {"padded", "w"})}, 1))) == "Pad Convolution");
    // The last window has nothing above zero but the padding.
    dlprim::Net net = open(padded_model({windows("MaxPool", {"padded"})}));
    CHECK(types(net) == "Pad Pooling");
    Values x = image;
    x[10] = -11;
    CHECK(run(net, {{"x", x}}) == Values{9, 7, 14, 0});
}

TEST_CASE("a shuffle of channels is one transposition between views") {
    dlprim::Net net = open(
        {.nodes = {node("Reshape", {"x", "groups"}, {"g"}),
                   node("Transpose", {"g"}, {"t"}, {{attribute("perm", Sizes{0, 2, 1, 3, 4})}}),
                   node("Reshape", {"t", "whole"}, {"y"})},
         .inputs = {value("x", {1, 4, 1, 2})},
         .outputs = {value("y", {1, 4, 1, 2})},
         .initializers = {integers("groups", {1, 2, 2, 1, 2}), integers("whole", {1, 4, 1, 2})}});
    CHECK(types(net) == "Reshape Transpose Reshape");
    CHECK(run(net, {{"x", {0, 1, 2, 3, 4, 5, 6, 7}}}) == Values{0, 1, 4, 5, 2, 3, 6, 7});
}
