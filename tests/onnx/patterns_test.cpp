// SPDX-License-Identifier: MIT
// What exporters write in pieces becomes one operator, and stays apart where a piece has another
// reader.
#include "onnx/support.hpp"

#include <cmath>

using namespace onnx_test;

namespace {

Model model_of(const std::vector<std::string>& nodes, const std::vector<std::string>& constants) {
    Model model;
    model.nodes = nodes;
    model.initializers = constants;
    model.inputs = {value("x", {2, 2})};
    model.outputs = {value("y", {2, 2})};
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
    if (is_absent()) return;
    const Model model =
        model_of({node("Sigmoid", {"x"}, {"s"}), node("Mul", {"x", "s"}, {"y"})}, {});
    check_activation(model, "silu", [](double x) { return x / (1 + std::exp(-x)); });
}

TEST_CASE("hardsigmoid and hardswish by relu6") {
    if (is_absent()) return;
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
    if (is_absent()) return;
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
    if (is_absent()) return;
    Model model = model_of({node("Sigmoid", {"x"}, {"s"}), node("Mul", {"x", "s"}, {"y"})}, {});
    model.outputs.push_back(value("s", {2, 2}));
    CHECK(types(open(model)) == "Activation Elementwise");
}
