// SPDX-License-Identifier: MIT
// Operators of ai.onnx.ml: labels and decision trees.
#include "onnx/session_support.hpp"

using namespace onnx_test;

namespace {

std::string numbers(const std::string& name, const Values& values) {
    return bytes(1, name) +
           bytes(5, floats("", {static_cast<std::int64_t>(values.size())}, values)) + number(20, 4);
}

/// One node that asks whether feature 0 is at most 1; its leaves weigh 10 and 20.
std::vector<std::string> one_tree() {
    return {numbers("nodes_splits", {1}),
            bytes(1, "nodes_modes") + bytes(5, tensor("", {1}, 2, std::string(1, '\0'))) +
                number(20, 4),
            attribute("nodes_featureids", Sizes{0}),
            attribute("nodes_truenodeids", Sizes{0}),
            attribute("nodes_falsenodeids", Sizes{1}),
            attribute("nodes_trueleafs", Sizes{1}),
            attribute("nodes_falseleafs", Sizes{1}),
            attribute("leaf_targetids", Sizes{0, 1}),
            numbers("leaf_weights", {10, 20}),
            attribute("tree_roots", Sizes{0, 0}),
            attribute("n_targets", 2)};
}

Model tree_model(const std::vector<std::string>& attributes) {
    Model model{.nodes = {node("TreeEnsemble", {"x"}, {"y"}, {attributes, "", "ai.onnx.ml"})},
                .inputs = {value("x", {-1, 2})},
                .outputs = {value("y", {-1, 2})},
                .domains = {{"ai.onnx.ml", 5}}};
    return model;
}

}  // namespace

TEST_CASE("trees add the weights of the leaves that rows come to") {
    std::vector<std::string> attributes = one_tree();
    const auto x = tensor({2, 2}, {0, 5, 3, 5});
    Session sum = open_session(tree_model(attributes));
    CHECK(sum.run({{"x", x}}) == "float [2, 2]: 20 0 0 40");
    attributes.push_back(attribute("aggregate_function", std::int64_t{0}));
    Session average = open_session(tree_model(attributes));
    CHECK(average.run({{"x", x}}) == "float [2, 2]: 10 0 0 20");
}

TEST_CASE("trees that lead nowhere are errors") {
    const auto x = tensor({1, 2}, {0, 5});
    std::vector<std::string> attributes = one_tree();
    attributes[3] = attribute("nodes_truenodeids", Sizes{7});
    Session outside = open_session(tree_model(attributes));
    CHECK(has(outside.error({{"x", x}}), "a node leads to number 7 of 2"));
    attributes = one_tree();
    attributes[5] = attribute("nodes_trueleafs", Sizes{0});
    Session circle = open_session(tree_model(attributes));
    CHECK(has(circle.error({{"x", x}}), "form a circle"));
    attributes = one_tree();
    attributes[2] = attribute("nodes_featureids", Sizes{2});
    Session feature = open_session(tree_model(attributes));
    CHECK(has(feature.error({{"x", x}}), "asks for feature 2 of 2"));
    attributes = one_tree();
    attributes[10] = attribute("n_targets", std::int64_t{1} << 60);
    Session targets = open_session(tree_model(attributes));
    CHECK(has(targets.error({{"x", tensor({16, 2}, Values(32))}}),
              "shape [16, 1152921504606846976]"));
    attributes = one_tree();
    attributes.push_back(attribute("post_transform", std::int64_t{1}));
    Session transform = open_session(tree_model(attributes));
    CHECK(has(transform.error({{"x", x}}), "'post_transform' is not supported"));
}

TEST_CASE("labels are looked up, and what is none becomes the default") {
    Model model{
        .nodes = {node("LabelEncoder", {"x"}, {"y"},
                       {{attribute("keys_int64s", Sizes{1, 2}),
                         numbers("values_tensor", {0.5f, 0.25f}), numbers("default_tensor", {9})},
                        "",
                        "ai.onnx.ml"})},
        .inputs = {value("x", {-1}, type_int64)},
        .outputs = {value("y", {-1})},
        .domains = {{"ai.onnx.ml", 4}}};
    Session session = open_session(model);
    CHECK(session.run({{"x", sizes({2, 3, 1})}}) == "float [3]: 0.25 9 0.5");
    model.nodes = {
        node("LabelEncoder", {"x"}, {"y"},
             {{attribute("keys_int64s", Sizes{1}), attribute("values_int64s", Sizes{1, 2})},
              "",
              "ai.onnx.ml"})};
    model.outputs = {value("y", {-1}, type_int64)};
    Session wrong = open_session(model);
    CHECK(has(wrong.error({{"x", sizes({1})}}), "there are 1 keys for 2 values"));
    model.nodes = {node("FeatureVectorizer", {"x"}, {"y"}, {{}, "", "ai.onnx.ml"})};
    Session absent = open_session(model);
    CHECK(has(absent.error({{"x", sizes({1})}}),
              "[ai.onnx.ml.FeatureVectorizer 'y', opset 4] this operator is not supported"));
}
