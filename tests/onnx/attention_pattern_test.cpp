// SPDX-License-Identifier: MIT
// Attention that exporters write in pieces becomes one operator.
#include "onnx/support.hpp"

#include <cmath>

using namespace onnx_test;

namespace {

constexpr std::int64_t length = 3, depth = 4;

Values sines(std::size_t count, float step) {
    Values values(count);
    for (std::size_t i = 0; i < count; ++i) values[i] = std::sin(step * static_cast<float>(i));
    return values;
}

/// softmax(q k^T / 2 + mask) v for q, k and v [1, length, 2 heads, depth]; with a soft cap, that of
/// the scores in front of the mask.
Values attention(const Values& q, const Values& k, const Values& v, const Values& mask,
                 double softcap) {
    Values y(q.size());
    const auto at = [](std::int64_t l, std::int64_t h, std::int64_t d) {
        return static_cast<std::size_t>((l * 2 + h) * depth + d);
    };
    for (std::int64_t h = 0; h < 2; ++h) {
        for (std::int64_t l = 0; l < length; ++l) {
            std::vector<double> weights;
            double sum = 0;
            for (std::int64_t s = 0; s < length; ++s) {
                double score = 0;
                for (std::int64_t d = 0; d < depth; ++d)
                    score += 0.5 * q[at(l, h, d)] * k[at(s, h, d)];
                if (softcap > 0) score = softcap * std::tanh(score / softcap);
                weights.push_back(std::exp(score + mask[static_cast<std::size_t>(s)]));
                sum += weights.back();
            }
            for (std::int64_t d = 0; d < depth; ++d) {
                double total = 0;
                for (std::int64_t s = 0; s < length; ++s)
                    total += weights[static_cast<std::size_t>(s)] * v[at(s, h, d)];
                y[at(l, h, d)] = sum > 0 ? static_cast<float>(total / sum) : 0;
            }
        }
    }
    return y;
}

/// From q, k and v [1, length, 2, depth] the scores' softmax and "y", by the nodes between.
Model attention_model(const std::vector<std::string>& between) {
    const NodeOptions heads{{attribute("perm", Sizes{0, 2, 1, 3})}};
    Model model{.nodes = {node("Transpose", {"q"}, {"qt"}, heads),
                          node("Transpose", {"v"}, {"vt"}, heads)}};
    model.nodes.insert(model.nodes.end(), between.begin(), between.end());
    model.nodes.push_back(node("MatMul", {"weights", "vt"}, {"yt"}));
    model.nodes.push_back(node("Transpose", {"yt"}, {"y"}, heads));
    const Sizes shape{1, length, 2, depth};
    model.inputs = {value("q", shape), value("k", shape), value("v", shape)};
    model.outputs = {value("y", shape)};
    model.initializers = {floats("two", {}, {2}), floats("root", {}, {std::sqrt(0.5f)}),
                          floats("zero", {}, {0}), floats("low", {}, {-HUGE_VALF})};
    return model;
}

const NodeOptions transposed_keys{{attribute("perm", Sizes{0, 2, 3, 1})}};
const Values queries = sines(24, 1), keys = sines(24, 2.5), results = sines(24, 0.7f);

void check_attention(const Model& model, const std::string& operators, const Values& mask,
                     const std::map<std::string, Values>& more = {}, double softcap = 0) {
    dlprim::Net net = open(model);
    CHECK(types(net) == operators);
    std::map<std::string, Values> inputs{{"q", queries}, {"k", keys}, {"v", results}};
    inputs.insert(more.begin(), more.end());
    const Values y = run(net, inputs), expected = attention(queries, keys, results, mask, softcap);
    for (std::size_t i = 0; i < y.size(); ++i) CHECK(y[i] == Approx(expected[i]).margin(1e-6));
}

}  // namespace

TEST_CASE("attention with the scores divided, and a mask of floats") {
    const std::vector<std::string> between{
        node("Transpose", {"k"}, {"kt"}, transposed_keys),
        node("MatMul", {"qt", "kt"}, {"product"}), node("Div", {"product", "two"}, {"scores"}),
        node("Add", {"mask", "scores"}, {"masked"}),
        node("Softmax", {"masked"}, {"weights"}, {{attribute("axis", std::int64_t{-1})}})};
    Model model = attention_model(between);
    model.inputs.push_back(value("mask", {1, 1, 1, length}));
    const Values mask{0, -1, -2};
    check_attention(model, "Transpose Transpose Transpose Attention Transpose", mask,
                    {{"mask", mask}});
}

TEST_CASE("attention with the scale shared out, a mask of booleans and a guard against NaN") {
    const NodeOptions last{{attribute("axis", std::int64_t{-1})}};
    Model model = attention_model(
        {node("Transpose", {"k"}, {"kt"}, transposed_keys), node("Mul", {"qt", "root"}, {"qs"}),
         node("Mul", {"root", "kt"}, {"ks"}), node("MatMul", {"qs", "ks"}, {"product"}),
         node("Less", {"mask", "zero"}, {"left_out"}), node("Not", {"left_out"}, {"kept"}),
         node("Where", {"kept", "zero", "low"}, {"added"}),
         node("Add", {"product", "added"}, {"masked"}), node("Softmax", {"masked"}, {"raw"}, last),
         node("IsNaN", {"raw"}, {"nan"}), node("Where", {"nan", "zero", "raw"}, {"weights"})});
    model.inputs.push_back(value("mask", {1, 1, 1, length}));
    const std::string operators =
        "Transpose Transpose Transpose Parameter Pointwise Pointwise Attention Transpose";
    check_attention(model, operators, {0, -HUGE_VALF, 0}, {{"mask", {1, -1, 1}}});
    // A row without any position is zero.
    dlprim::Net net = open(model);
    CHECK(run(net, {{"q", queries}, {"k", keys}, {"v", results}, {"mask", {-1, -1, -1}}}) ==
          Values(24, 0));
}

TEST_CASE("attention with keys that are transposed as a batch of matrices") {
    Model model = attention_model(
        {node("Transpose", {"k"}, {"kh"}, {{attribute("perm", Sizes{0, 2, 1, 3})}}),
         node("Reshape", {"kh", "flat"}, {"kf"}),
         node("Transpose", {"kf"}, {"kft"}, {{attribute("perm", Sizes{0, 2, 1})}}),
         node("Reshape", {"kft", "whole"}, {"kt"}), node("Mul", {"kt", "half"}, {"ks"}),
         node("MatMul", {"qt", "ks"}, {"product"}),
         node("Softmax", {"product"}, {"weights"}, {{attribute("axis", std::int64_t{3})}})});
    model.initializers.push_back(floats("half", {}, {0.5}));
    model.initializers.push_back(integers("flat", {2, length, depth}));
    model.initializers.push_back(integers("whole", {1, 2, depth, length}));
    check_attention(model, "Transpose Transpose Transpose Attention Transpose", {0, 0, 0});
}

TEST_CASE("attention with a soft cap, and scores that a condition chooses") {
    Model model = attention_model(
        {node("Transpose", {"k"}, {"kt"}, transposed_keys),
         node("MatMul", {"qt", "kt"}, {"product"}), node("Div", {"product", "four"}, {"small"}),
         node("Tanh", {"small"}, {"bent"}), node("Mul", {"bent", "two"}, {"capped"}),
         node("Less", {"zero", "mask"}, {"kept"}),
         node("Where", {"kept", "capped", "low"}, {"left"}),
         node("Softmax", {"left"}, {"weights"}, {{attribute("axis", std::int64_t{-1})}})});
    model.inputs.push_back(value("mask", {1, 1, 1, length}));
    model.initializers.push_back(floats("four", {}, {4}));
    check_attention(model, "Transpose Transpose Transpose Parameter Pointwise Attention Transpose",
                    {0, -HUGE_VALF, 0}, {{"mask", {1, -1, 1}}}, 2);
}

TEST_CASE("scores that are an output stay") {
    Model model = attention_model(
        {node("Transpose", {"k"}, {"kt"}, transposed_keys),
         node("MatMul", {"qt", "kt"}, {"product"}), node("Div", {"product", "two"}, {"scores"}),
         node("Softmax", {"scores"}, {"weights"}, {{attribute("axis", std::int64_t{-1})}})});
    model.outputs.push_back(value("scores", {1, 2, length, length}));
    check_attention(model,
                    "Transpose Transpose Transpose MatMul Pointwise Softmax MatMul Transpose",
                    {0, 0, 0});
}
