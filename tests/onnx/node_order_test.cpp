// SPDX-License-Identifier: MIT
// Nodes that are not sorted are sorted, in graphs of nodes and in functions too. A cycle, and a
// value that nothing makes, are errors that name them.
#include "onnx/session_support.hpp"

using namespace onnx_test;
using dlprim::ErrorKind;

namespace {

/// y, of nodes in this order, for x = [-1, -2].
Model of(const std::vector<std::string>& nodes) {
    Model model{.nodes = nodes, .inputs = {value("x", {2})}, .outputs = {value("y", {2})}};
    return model;
}

std::string error_in(const Model& model) {
    return error_of(model.str(), ErrorKind::format);
}

}  // namespace

TEST_CASE("nodes that are not sorted are sorted") {
    const Model model =
        of({node("Add", {"b", "a"}, {"y"}), node("Relu", {"a"}, {"b"}), node("Neg", {"x"}, {"a"})});
    CHECK(run(model, {{"x", {-1, -2}}}) == Values{2, 4});
    CHECK(types(open(of({node("Exp", {"x"}, {"e"}), node("Sin", {"x"}, {"s"}),
                         node("Mul", {"s", "e"}, {"y"})}))) ==
          "Pointwise Pointwise Elementwise");  // those that are sorted stay where they are
}

TEST_CASE("nodes of branches are sorted, and so is a node behind what its branches read") {
    Graph branch;
    branch.nodes = {node("Sub", {"t", "a"}, {"r"}), node("Mul", {"a", "a"}, {"t"})};
    branch.outputs = {value("r", {2})};
    Model model = of({node("If", {"c"}, {"y"},
                           {{attribute("then_branch", branch), attribute("else_branch", branch)}}),
                      node("Neg", {"x"}, {"a"})});
    model.initializers = {onnx_bytes::tensor("c", {}, type_bool, "\1")};
    CHECK(run(model, {{"x", {-1, -2}}}) == Values{0, 2});
}

TEST_CASE("nodes of functions are sorted") {
    Model model = of({node("Twice", {"x"}, {"y"}, {{}, "", "custom"})});
    model.functions = {bytes(1, "Twice") + bytes(4, "in") + bytes(5, "out") +
                       bytes(7, node("Add", {"n", "n"}, {"out"})) +
                       bytes(7, node("Neg", {"in"}, {"n"})) +
                       bytes(9, bytes(1, "") + number(2, 17)) + bytes(10, "custom")};
    CHECK(run(model, {{"x", {-1, -2}}}) == Values{2, 4});
}

TEST_CASE("nodes that form a cycle are named") {
    CHECK(has(
        error_in(of({node("Relu", {"x"}, {"t"}), node("Add", {"x", "b"}, {"a"}, {{}, "first", ""}),
                     node("Neg", {"a"}, {"b"}), node("Relu", {"b"}, {"y"})})),
        "the nodes Add 'first', Neg 'b' form a cycle: each reads a result of the next one, "
        "and the last one a result of the first one"));
    CHECK(has(error_in(of({node("Add", {"x", "y"}, {"y"})})),
              "the node Add 'y' reads its own result"));
    Graph branch;
    branch.nodes = {node("Relu", {"b"}, {"r"})};
    branch.outputs = {value("r", {2})};
    Model model = of({node("If", {"c"}, {"a"},
                           {{attribute("then_branch", branch), attribute("else_branch", branch)}}),
                      node("Neg", {"a"}, {"b"}), node("Relu", {"a"}, {"y"})});
    model.initializers = {onnx_bytes::tensor("c", {}, type_bool, "\1")};
    CHECK(has(error_in(model), "the nodes If 'a', Neg 'b' form a cycle"));
    std::vector<std::string> ring;
    for (int i = 0; i < 20; ++i)
        ring.push_back(
            node("Relu", {"v" + std::to_string(i)}, {"v" + std::to_string((i + 1) % 20)}));
    CHECK(has(error_in(of(ring)), "12 more form a cycle"));
}

TEST_CASE("a value that nothing makes is named, in whatever order nodes are") {
    CHECK(has(error_in(of({node("Add", {"a", "weight"}, {"y"}), node("Neg", {"x"}, {"a"})})),
              "[Add 'y', opset 17] input 'weight' is made by no node, and is no input and no "
              "initialiser"));
}
