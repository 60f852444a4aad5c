// SPDX-License-Identifier: MIT
// TreeEnsembleClassifier and TreeEnsembleRegressor: trees whose nodes are named by numbers.
#include "onnx/session_support.hpp"

using namespace onnx_test;

namespace {

/// Two trees over x [N, 2]: the first asks whether feature 0 is at most 1, then whether feature 1
/// is above 2; the second is a leaf. Their leaves are nodes 3, 1 and 4 of tree 0, and node 0 of
/// tree 8.
std::vector<std::string> two_trees() {
    return {
        attribute("nodes_treeids", Sizes{0, 0, 0, 0, 0, 8}),
        attribute("nodes_nodeids", Sizes{2, 3, 0, 1, 4, 0}),
        attribute("nodes_featureids", Sizes{0, 0, 1, 0, 0, 0}),
        floats_attribute("nodes_values", {1, 0, 2, 0, 0, 0}),
        texts_attribute("nodes_modes", {"BRANCH_LEQ", "LEAF", "BRANCH_GT", "LEAF", "LEAF", "LEAF"}),
        attribute("nodes_truenodeids", Sizes{3, 0, 1, 0, 0, 0}),
        attribute("nodes_falsenodeids", Sizes{0, 0, 4, 0, 0, 0})};
}

std::vector<std::string> weights(const std::string& prefix, const Sizes& ids,
                                 const std::vector<float>& values) {
    return {attribute(prefix + "_treeids", Sizes{0, 0, 0, 8}),
            attribute(prefix + "_nodeids", Sizes{3, 1, 4, 0}), attribute(prefix + "_ids", ids),
            floats_attribute(prefix + "_weights", values)};
}

Model model_of(const std::string& type, std::vector<std::string> attributes,
               const std::vector<std::string>& more) {
    attributes.insert(attributes.end(), more.begin(), more.end());
    const bool labels = type == "TreeEnsembleClassifier";
    Model model{.nodes = {node(
                    type, {"x"},
                    labels ? std::vector<std::string>{"label", "y"} : std::vector<std::string>{"y"},
                    {attributes, "", "ai.onnx.ml"})},
                .inputs = {value("x", {-1, 2})},
                .outputs = {value("y", {-1, 2})},
                .domains = {{"ai.onnx.ml", 3}}};
    if (labels) model.outputs.insert(model.outputs.begin(), value("label", {-1}, type_int64));
    return model;
}

const ONNXValue rows = tensor({3, 2}, {0, 5, 3, 5, 3, 1});

}  // namespace

TEST_CASE("a regression adds what leaves give to its targets") {
    std::vector<std::string> attributes = two_trees();
    attributes.push_back(attribute("n_targets", 2));
    const auto votes = weights("target", {0, 1, 1, 0}, {10, 20, 30, 1});
    Session sum = open_session(model_of("TreeEnsembleRegressor", attributes, votes));
    CHECK(sum.run({{"x", rows}}) == "float [3, 2]: 11 0 1 20 1 30");
    attributes.push_back(attribute("aggregate_function", std::string("AVERAGE")));
    attributes.push_back(floats_attribute("base_values", {100, 200}));
    Session average = open_session(model_of("TreeEnsembleRegressor", attributes, votes));
    CHECK(average.run({{"x", rows}}) == "float [3, 2]: 105.5 200 100.5 210 100.5 215");
}

TEST_CASE("a classifier gives the label of what the leaves give most") {
    std::vector<std::string> attributes = two_trees();
    attributes.push_back(attribute("classlabels_int64s", Sizes{4, 6}));
    Session both = open_session(model_of("TreeEnsembleClassifier", attributes,
                                         weights("class", {0, 1, 1, 0}, {1, 2, 0.5f, 1})));
    CHECK(both.run({{"x", rows}}) == "float [3, 2]: 2 0 1 2 1 0.5");
    CHECK(both.output("label") == "int64 [3]: 4 6 4");
}

TEST_CASE("of two classes the leaves may weigh only one") {
    std::vector<std::string> attributes = two_trees();
    attributes.push_back(attribute("classlabels_int64s", Sizes{4, 6}));
    Session shares =
        open_session(model_of("TreeEnsembleClassifier", attributes,
                              weights("class", {0, 0, 0, 0}, {0.75f, 0.25f, 0.5f, 0})));
    CHECK(shares.run({{"x", rows}}) == "float [3, 2]: 0.25 0.75 0.75 0.25 0.5 0.5");
    CHECK(shares.output("label") == "int64 [3]: 6 4 4");
    Session margins = open_session(model_of("TreeEnsembleClassifier", attributes,
                                            weights("class", {1, 1, 1, 1}, {3, -2, 1, -1})));
    CHECK(margins.run({{"x", rows}}) == "float [3, 2]: -2 2 3 -3 -0 0");
    CHECK(margins.output("label") == "int64 [3]: 6 4 4");
}

TEST_CASE("lists of trees that do not fit are errors") {
    const auto votes = weights("target", {0, 0, 0, 0}, {1, 2, 3, 4});
    const auto error_of_list = [&](std::size_t at, const std::string& instead) {
        std::vector<std::string> attributes = two_trees();
        attributes[at] = instead;
        Session session = open_session(model_of("TreeEnsembleRegressor", attributes, votes));
        return session.error({{"x", rows}});
    };
    CHECK(has(error_of_list(0, attribute("nodes_treeids", Sizes{0})),
              "attributes of nodes have 1 and 6 entries"));
    CHECK(has(error_of_list(1, attribute("nodes_nodeids", Sizes{2, 3, 0, 1, 1, 0})),
              "tree 0 has two nodes 1"));
    CHECK(has(error_of_list(2, attribute("nodes_featureids", Sizes{0, 0, 2, 0, 0, 0})),
              "asks for feature 2 of 2"));
    CHECK(has(error_of_list(5, attribute("nodes_truenodeids", Sizes{9, 0, 1, 0, 0, 0})),
              "node 2 of tree 0 leads to node 9, which is not there"));
    CHECK(has(error_of_list(5, attribute("nodes_truenodeids", Sizes{0, 0, 1, 0, 0, 0})),
              "tree 0 has two beginnings"));
    std::vector<std::string> circle = two_trees();
    circle[0] = attribute("nodes_treeids", Sizes{0, 0, 0, 0, 9, 8});
    circle[6] = attribute("nodes_falsenodeids", Sizes{0, 0, 2, 0, 0, 0});
    Session endless = open_session(model_of("TreeEnsembleRegressor", circle, votes));
    CHECK(has(endless.error({{"x", rows}}), "the nodes of a tree form a circle"));
    std::vector<std::string> inner = votes;
    inner[1] = attribute("target_nodeids", Sizes{3, 1, 2, 0});
    Session session = open_session(model_of("TreeEnsembleRegressor", two_trees(), inner));
    CHECK(has(session.error({{"x", rows}}), "node 2 of tree 0 has a weight and is no leaf"));
}
