// SPDX-License-Identifier: MIT
// What the golden files of com.microsoft and ai.onnx.ml cannot hold: packed heads, which ONNX
// Runtime computes on GPUs alone, strings, maps, and messages.
#include "onnx/session_support.hpp"

using namespace onnx_test;

namespace {

/// A node of a domain on the inputs x, and others that are given.
Model one_node(const std::string& domain, const std::string& type,
               const std::vector<std::string>& attributes,
               const std::vector<std::string>& inputs = {"x"},
               const std::vector<std::string>& outputs = {"y"}) {
    Model model{.nodes = {node(type, inputs, outputs, {attributes, "the node", domain})},
                .domains = {{domain, 1}}};
    for (const std::string& name : inputs)
        if (!name.empty()) model.inputs.push_back(value(name, {}));
    for (const std::string& name : outputs) model.outputs.push_back(bytes(1, name));
    return model;
}

const std::string microsoft = "com.microsoft", ml = "ai.onnx.ml";

/// Inputs take any shape.
Session open_one(Model model, const std::vector<std::string>& inputs = {"x"}) {
    model.inputs.clear();
    for (const std::string& name : inputs)
        model.inputs.push_back(bytes(1, name) + bytes(2, bytes(1, number(1, type_float))));
    return open_session(model);
}

}  // namespace

TEST_CASE("an operator of com.microsoft without a rule is named with its domain and node") {
    Session session = open_one(one_node(microsoft, "Sampling", {}));
    const std::string error = session.error({{"x", tensor({1}, {1})}});
    CHECK(
        has(error, "[com.microsoft.Sampling 'the node', opset 1] this operator is not supported"));
    Session fused = open_one(one_node(microsoft, "FusedGemm",
                                      {attribute("activation", std::string("Round"))}, {"x", "w"}),
                             {"x", "w"});
    CHECK(has(fused.error({{"x", tensor({1, 1}, {1})}, {"w", tensor({1, 1}, {1})}}),
              "[com.microsoft.FusedGemm 'the node', opset 1] activation 'Round' is not supported"));
}

TEST_CASE("packed heads give what heads that are apart give") {
    const std::vector<std::string> heads{attribute("num_heads", 2)};
    // Two heads of one feature: [B, L, heads, (q, k, v), H], [B, L, heads, (k, v), H], [B, L, D].
    const Values q{1, 2, -1, 3}, k{0.5f, 1, 2, -1}, v{4, 5, 6, 7};
    Values all, two;
    for (std::size_t i = 0; i < 4; ++i) {
        for (const Values* const one : {&q, &k, &v}) all.push_back((*one)[i]);
        for (const Values* const one : {&k, &v}) two.push_back((*one)[i]);
    }
    Session apart = open_one(one_node(microsoft, "MultiHeadAttention", heads, {"q", "k", "v"}),
                             {"q", "k", "v"});
    const std::string wanted = apart.run(
        {{"q", tensor({1, 2, 2}, q)}, {"k", tensor({1, 2, 2}, k)}, {"v", tensor({1, 2, 2}, v)}});
    CHECK(has(wanted, "float [1, 2, 2]: "));
    Session packed = open_one(one_node(microsoft, "MultiHeadAttention", heads, {"q"}), {"q"});
    CHECK(packed.run({{"q", tensor({1, 2, 2, 3, 1}, all)}}) == wanted);
    Session by_two =
        open_one(one_node(microsoft, "MultiHeadAttention", heads, {"q", "k"}), {"q", "k"});
    CHECK(by_two.run({{"q", tensor({1, 2, 2}, q)}, {"k", tensor({1, 2, 2, 2, 1}, two)}}) == wanted);
}

TEST_CASE("sums with a bias") {
    Session add = open_one(one_node(microsoft, "BiasAdd", {}, {"x", "b", "s"}), {"x", "b", "s"});
    const ONNXValue x = tensor({1, 2, 2}, {1, 2, 3, 4}), b = tensor({2}, {10, 20}),
                    s = tensor({1, 2, 2}, {100, 200, 300, 400});
    CHECK(add.run({{"x", x}, {"b", b}, {"s", s}}) == "float [1, 2, 2]: 111 222 313 424");
    Session dropout =
        open_one(one_node(microsoft, "BiasDropout", {}, {"x", "b", "s"}), {"x", "b", "s"});
    CHECK(dropout.run({{"x", x}, {"b", b}, {"s", s}}) == "float [1, 2, 2]: 111 222 313 424");
    Session gate = open_one(one_node(microsoft, "BiasSplitGelu", {}, {"x", "b"}), {"x", "b"});
    CHECK(gate.run({{"x", x}, {"b", b}}) == "float [1, 2, 1]: 242 312");
}

TEST_CASE("ZipMap makes maps of a session's output, and leaves a network the scores") {
    const auto x = tensor({2, 2}, {1, 2, 3, 4});
    const Model numbers = one_node(ml, "ZipMap", {attribute("classlabels_int64s", Sizes{7, 9})});
    CHECK(open_one(numbers).run({{"x", x}}) == "7 9 -> float [2, 2]: 1 2 3 4");
    const Model texts =
        one_node(ml, "ZipMap", {texts_attribute("classlabels_strings", {"a", "b"})});
    CHECK(open_one(texts).run({{"x", x}}) == "a b -> float [2, 2]: 1 2 3 4");
    CHECK(has(open_one(texts).error({{"x", tensor({1, 3}, {1, 2, 3})}}),
              "there are 2 class labels for scores of shape [1, 3]"));
    Model network = numbers;
    network.inputs = {value("x", {2, 2})};
    CHECK(run(network, {{"x", {1, 2, 3, 4}}}) == Values{1, 2, 3, 4});
    Model read = numbers;
    read.nodes.push_back(node("Neg", {"y"}, {"z"}));
    read.outputs = {bytes(1, std::string("z"))};
    CHECK(has(open_one(read).error({{"x", x}}), "input 0 is a sequence of maps"));
}

TEST_CASE("categories of strings, and elements that are of none") {
    Model model = one_node(ml, "OneHotEncoder", {texts_attribute("cats_strings", {"a", "b"})});
    model.inputs = {value("x", {-1, 1}, type_string)};
    Session session = open_session(model);
    CHECK(session.run({{"x", strings({3, 1}, {"b", "c", "a"})}}) == "float [3, 1, 2]: 0 1 0 0 1 0");
    model = one_node(ml, "OneHotEncoder",
                     {texts_attribute("cats_strings", {"a", "b"}), attribute("zeros", 0)});
    model.inputs = {value("x", {-1, 1}, type_string)};
    Session strict = open_session(model);
    CHECK(has(strict.error({{"x", strings({1, 1}, {"c"})}}), "'c' is no category"));
    Session numbers = open_one(one_node(
        ml, "OneHotEncoder", {attribute("cats_int64s", Sizes{1, 2}), attribute("zeros", 0)}));
    CHECK(numbers.run({{"x", tensor({1}, {2})}}) == "float [1, 2]: 0 1");
    CHECK(has(numbers.error({{"x", tensor({1}, {3})}}), "an element is no category"));
}

TEST_CASE("a support vector classifier of labels that are strings") {
    const Model model = one_node(
        ml, "SVMClassifier",
        {attribute("vectors_per_class", Sizes{1, 1}), floats_attribute("support_vectors", {1, -1}),
         floats_attribute("coefficients", {1, 1}), floats_attribute("rho", {0.5f}),
         texts_attribute("classlabels_strings", {"cat", "dog"})},
        {"x"}, {"label", "y"});
    Session session = open_one(model);
    // 2 - 2 + 0.5 votes for the first class.
    CHECK(session.run({{"x", tensor({1, 1}, {2})}}) == "float [1, 2]: -0.5 0.5");
    CHECK(session.output("label") == "string [1]: cat");
}
