// SPDX-License-Identifier: MIT
// Operators of ai.onnx.ml that scale, fill or weigh features, as scikit-learn's exporter writes
// them.
#include "onnx/session_support.hpp"

#include <cmath>

using namespace onnx_test;

namespace {

/// x [N, 2] through one node.
Model one_node(const std::string& type, const std::vector<std::string>& attributes,
               const std::vector<std::string>& outputs = {"y"}) {
    Model model{.nodes = {node(type, {"x"}, outputs, {attributes, "", "ai.onnx.ml"})},
                .inputs = {value("x", {-1, 2})},
                .outputs = {value("y", {-1, 2})},
                .domains = {{"ai.onnx.ml", 1}}};
    return model;
}

std::string run_one(const Model& model, const ONNXValue& x) {
    Session session = open_session(model);
    return session.run({{"x", x}});
}

}  // namespace

TEST_CASE("features are shifted and scaled") {
    const auto x = tensor({2, 2}, {1, 2, 3, 4});
    CHECK(run_one(one_node("Scaler", {floats_attribute("offset", {1, 2}),
                                      floats_attribute("scale", {2, 0.5f})}),
                  x) == "float [2, 2]: 0 0 4 1");
    Session wrong = open_session(one_node("Scaler", {floats_attribute("scale", {1, 2, 3})}));
    CHECK(has(wrong.error({{"x", x}}), "attribute 'scale' has 3 entries for 2 features"));
}

TEST_CASE("rows over their norm, and rows of zeros as they are") {
    const auto x = tensor({2, 2}, {-3, 4, 0, 0});
    const auto norm = [&](const std::string& name) {
        return run_one(one_node("Normalizer", {attribute("norm", name)}), x);
    };
    CHECK(norm("MAX") == "float [2, 2]: -0.75 1 0 0");
    CHECK(norm("L1") == "float [2, 2]: -0.428571 0.571429 0 0");
    CHECK(norm("L2") == "float [2, 2]: -0.6 0.8 0 0");
    Session wrong = open_session(one_node("Normalizer", {attribute("norm", std::string("L3"))}));
    CHECK(has(wrong.error({{"x", x}}), "norm 'L3' is not supported"));
}

TEST_CASE("gaps are filled, be they NaN or a number") {
    const float nan = std::nanf("");
    const std::string filling = floats_attribute("imputed_value_floats", {7, 8});
    CHECK(run_one(one_node("Imputer", {filling, number_attribute("replaced_value_float", nan)}),
                  tensor({2, 2}, {nan, 2, 3, nan})) == "float [2, 2]: 7 2 3 8");
    CHECK(run_one(one_node("Imputer", {filling, number_attribute("replaced_value_float", 3)}),
                  tensor({2, 2}, {1, 2, 3, 3})) == "float [2, 2]: 1 2 7 8");
    Model integers = one_node("Imputer", {attribute("imputed_value_int64s", Sizes{9}),
                                          attribute("replaced_value_int64", -1)});
    integers.inputs = {value("x", {3}, type_int64)};
    integers.outputs = {value("y", {3}, type_int64)};
    CHECK(run_one(integers, sizes({-1, 4, -1})) == "int64 [3]: 9 4 9");
}

TEST_CASE("a regression weighs features for each target") {
    const std::vector<std::string> attributes{floats_attribute("coefficients", {1, 2, 3, 4}),
                                              floats_attribute("intercepts", {10, 20}),
                                              attribute("targets", 2)};
    CHECK(run_one(one_node("LinearRegressor", attributes), tensor({1, 2}, {1, -1})) ==
          "float [1, 2]: 9 19");
    Session wrong =
        open_session(one_node("LinearRegressor", {floats_attribute("coefficients", {1, 2, 3})}));
    CHECK(has(wrong.error({{"x", tensor({1, 2}, {1, 1})}}),
              "there are 3 coefficients and 1 intercepts for 2 features and 1 scores"));
}

TEST_CASE("a classifier gives the label of the highest score, a number or a text") {
    std::vector<std::string> attributes{floats_attribute("coefficients", {1, 0, 0, 1, -1, -1}),
                                        floats_attribute("intercepts", {0, 0, 0}),
                                        attribute("classlabels_ints", Sizes{5, 6, 7})};
    const auto x = tensor({3, 2}, {1, 2, 3, 2, -1, -1});
    Model model = one_node("LinearClassifier", attributes, {"label", "y"});
    model.outputs = {value("label", {-1}, type_int64), value("y", {-1, 3})};
    Session session = open_session(model);
    CHECK(session.run({{"x", x}}) == "float [3, 3]: 1 2 -3 3 2 -5 -1 -1 2");
    CHECK(session.output("label") == "int64 [3]: 6 5 7");
    attributes[2] = texts_attribute("classlabels_strings", {"a", "b", "c"});
    attributes.push_back(attribute("post_transform", std::string("LOGISTIC")));
    model = one_node("LinearClassifier", attributes, {"label", "y"});
    model.outputs = {value("label", {-1}, type_string), value("y", {-1, 3})};
    Session named = open_session(model);
    CHECK(named.run({{"x", tensor({1, 2}, {0, 0})}}) == "float [1, 3]: 0.5 0.5 0.5");
    CHECK(named.output("label") == "string [1]: a");
    attributes[2] = attribute("classlabels_ints", Sizes{5, 6});
    Session wrong = open_session(one_node("LinearClassifier", attributes, {"label", "y"}));
    CHECK(has(wrong.error({{"x", x}}), "there are 6 coefficients and 3 intercepts"));
}
