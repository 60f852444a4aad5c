// SPDX-License-Identifier: MIT
// Losses: labels that are ignored though no class has their number, and what is refused.
#include "onnx/session_support.hpp"

using namespace onnx_test;

namespace {

Model loss_model(const std::string& type, const std::vector<std::string>& inputs,
                 const std::vector<std::string>& attributes) {
    Model model{.nodes = {node(type, inputs, {"y"}, {attributes, "loss"})},
                .inputs = {value("x", {3, 2}), value("labels", {3}, type_int64)},
                .outputs = {value("y", {})}};
    return model;
}

}  // namespace

TEST_CASE("the mean counts the weights of labels that are not ignored") {
    Model model = loss_model("NegativeLogLikelihoodLoss", {"x", "labels", "weights"},
                             {attribute("ignore_index", std::int64_t{1} << 40)});
    model.initializers = {floats("weights", {2}, {1, 3})};
    Session session = open_session(model);
    const auto x = tensor({3, 2}, {-1, -2, -3, -4, -5, -6});
    CHECK(session.run({{"x", x}, {"labels", sizes({1, std::int64_t{1} << 40, 0})}}) ==
          "float []: 2.75");  // (3 * 2 + 1 * 5) / 4
    CHECK(session.run({{"x", x}, {"labels", sizes({0, 0, 1})}}) == "float []: 4.4");
}

TEST_CASE("what a loss refuses names the operator, its version and the node") {
    const auto refused = [](const Model& model, const std::string& words) {
        const std::string text = error_of(model.str(), dlprim::ErrorKind::format);
        CHECK(has(text, words));
        CHECK(has(text, "Loss 'loss', opset 17]"));
    };
    refused(loss_model("SoftmaxCrossEntropyLoss", {"x", "labels"},
                       {attribute("reduction", std::string("median"))}),
            "reduction 'median' is none of none, sum and mean");
    Model model = loss_model("NegativeLogLikelihoodLoss", {"x", "labels", "weights"}, {});
    model.initializers = {floats("weights", {3}, {1, 2, 3})};
    refused(model, "weights of shape [3] for 2 classes");
    model = loss_model("NegativeLogLikelihoodLoss", {"x", "labels"}, {});
    model.inputs = {value("x", {3, 2}), value("labels", {2}, type_int64)};
    refused(model, "scores of shape [3, 2] and labels of shape [2] do not fit");
}
