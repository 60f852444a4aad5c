// SPDX-License-Identifier: MIT
// Recurrent operators: sequences that end early, clipping, functions with parameters, and which
// nodes become the project's own LSTM and GRU. Values are computed here by the definition.
#include "onnx/device_support.hpp"

#include <algorithm>
#include <cmath>

using namespace onnx_test;

namespace {

constexpr std::int64_t steps = 4, batch = 2, features = 3, hidden = 2;

Values numbers(std::int64_t count, std::uint64_t seed) {
    Values values;
    for (const std::int64_t v : scattered(count, 4001, seed))
        values.push_back(static_cast<float>(v - 2000) / 1000);
    return values;
}

/// One node with constant weights, for `directions` of `gates` each.
struct Node {
    std::string type;
    std::int64_t gates, directions = 1;
    Values x = numbers(steps * batch * features, 1);
    Values w, r, b, h, c, p;

    Node(std::string name, std::int64_t count, std::int64_t runs = 1)
        : type(std::move(name)), gates(count), directions(runs) {
        const std::int64_t rows = directions * gates * hidden;
        w = numbers(rows * features, 2);
        r = numbers(rows * hidden, 3);
        b = numbers(rows * 2, 4);
        h = numbers(directions * batch * hidden, 5);
        c = numbers(directions * batch * hidden, 6);
        p = numbers(directions * 3 * hidden, 7);
    }

    Model model(const std::vector<std::string>& inputs, std::vector<std::string> attributes,
                const std::string& output) const {
        const std::int64_t d = directions, rows = gates * hidden;
        Model made;
        attributes.push_back(attribute("hidden_size", hidden));
        std::vector<std::string> outputs{"", "", ""};
        if (output == "Y") outputs[0] = "y";
        if (output == "Y_h") outputs[1] = "y";
        if (output == "Y_c") outputs[2] = "y";
        if (type != "LSTM") outputs.pop_back();
        made.nodes = {node(type, inputs, outputs, {attributes, "n"})};
        made.initializers = {
            floats("w", {d, rows, features}, w), floats("r", {d, rows, hidden}, r),
            floats("b", {d, 2 * rows}, b),       floats("h", {d, batch, hidden}, h),
            floats("c", {d, batch, hidden}, c),  floats("p", {d, 3 * hidden}, p)};
        made.inputs = {value("x", {steps, batch, features})};
        made.outputs = {
            value("y", output == "Y" ? Sizes{steps, d, batch, hidden} : Sizes{d, batch, hidden})};
        return made;
    }

    /// What gate `k` gets at this place: the weights' products, and both biases.
    double sum(std::int64_t t, std::int64_t n, std::int64_t k, std::int64_t j,
               const std::vector<double>& old_h) const {
        const std::int64_t row = k * hidden + j;
        double total = at(b, row) + at(b, gates * hidden + row);
        for (std::int64_t i = 0; i < features; ++i)
            total += at(x, (t * batch + n) * features + i) * at(w, row * features + i);
        for (std::int64_t i = 0; i < hidden; ++i)
            total += old_h[static_cast<std::size_t>(n * hidden + i)] * at(r, row * hidden + i);
        return total;
    }
    static double at(const Values& values, std::int64_t i) {
        return values[static_cast<std::size_t>(i)];
    }
};

double sigmoid(double x) {
    return 1 / (1 + std::exp(-x));
}

/// An LSTM backwards, with peepholes, clipping and lengths; Y, and then the last h and c.
std::vector<std::vector<double>> lstm(const Node& node, const Sizes& lengths, double clip) {
    std::vector<double> h(node.h.begin(), node.h.end()), c(node.c.begin(), node.c.end()),
        y(static_cast<std::size_t>(steps * batch * hidden), 0);
    const auto gate = [&](double sum, std::int64_t peephole, std::int64_t j, double state) {
        return sigmoid(
            std::clamp(sum + Node::at(node.p, peephole * hidden + j) * state, -clip, clip));
    };
    for (std::int64_t t = steps - 1; t >= 0; --t) {
        const std::vector<double> old = h;
        for (std::int64_t n = 0; n < batch; ++n)
            for (std::int64_t j = 0; j < hidden; ++j) {
                if (t >= lengths[static_cast<std::size_t>(n)]) continue;
                const auto at = static_cast<std::size_t>(n * hidden + j);
                const double i = gate(node.sum(t, n, 0, j, old), 0, j, c[at]);
                const double f = gate(node.sum(t, n, 2, j, old), 2, j, c[at]);
                c[at] =
                    f * c[at] + i * std::tanh(std::clamp(node.sum(t, n, 3, j, old), -clip, clip));
                h[at] = gate(node.sum(t, n, 1, j, old), 1, j, c[at]) * std::tanh(c[at]);
                y[static_cast<std::size_t>(t * batch * hidden) + at] = h[at];
            }
    }
    return {y, h, c};
}

}  // namespace

TEST_CASE("an LSTM with lengths, peepholes and clipping, backwards") {
    const Node node("LSTM", 4);
    const std::vector<std::string> inputs{"x", "w", "r", "b", "lengths", "h", "c", "p"};
    const std::vector<std::string> attributes{attribute("direction", std::string("reverse")),
                                              number_attribute("clip", 0.75f)};
    const std::vector<std::vector<double>> expected = lstm(node, {2, 4}, 0.75);
    const std::vector<std::string> outputs{"Y", "Y_h", "Y_c"};
    for (std::size_t i = 0; i < outputs.size(); ++i) {
        Model model = node.model(inputs, attributes, outputs[i]);
        model.initializers.push_back(onnx_bytes::tensor("lengths", {batch}, type_int32,
                                                        raw(std::vector<std::int32_t>{2, 4})));
        check_near(model, {{"x", node.x}}, expected[i]);
    }
}

// As ONNX Runtime does. ONNX does not say it.
TEST_CASE("a sequence of no steps ends with zeros, not with its initial state") {
    const std::string both = attribute("direction", std::string("bidirectional"));
    for (const std::int64_t gates : {1, 3, 4}) {
        const Node node(gates == 1 ? "RNN" : gates == 3 ? "GRU" : "LSTM", gates, 2);
        std::vector<std::string> inputs{"x", "w", "r", "b", "", "h"};
        if (gates == 4) inputs.push_back("c");
        for (const std::string output : {"Y_h", "Y_c"}) {
            if (output == "Y_c" && gates != 4) continue;
            INFO(node.type << " " << output);
            const Values all = run(node.model(inputs, {both}, output), {{"x", node.x}});
            std::vector<double> expected(all.begin(), all.end());
            for (std::int64_t d = 0; d < 2; ++d)
                std::fill_n(expected.begin() + d * batch * hidden, hidden, 0.0);
            inputs[4] = "lengths";
            Model model = node.model(inputs, {both}, output);
            inputs[4] = "";
            model.initializers.push_back(onnx_bytes::tensor(
                "lengths", {batch}, type_int32, raw(std::vector<std::int32_t>{0, steps})));
            check_near(model, {{"x", node.x}}, expected);
        }
    }
}

TEST_CASE("functions take their parameters from the lists in order") {
    const Node node("RNN", 1, 2);
    const Model model = node.model({"x", "w", "r"},
                                   {attribute("direction", std::string("bidirectional")),
                                    texts_attribute("activations", {"leakyrelu", "HardSigmoid"}),
                                    floats_attribute("activation_alpha", {0.25, 0.125}),
                                    floats_attribute("activation_beta", {0.375})},
                                   "Y");
    std::vector<double> expected(static_cast<std::size_t>(steps * 2 * batch * hidden));
    for (std::int64_t d = 0; d < 2; ++d) {
        Node one("RNN", 1);
        const auto half = [&](const Values& all) {
            const auto size = static_cast<std::ptrdiff_t>(all.size() / 2);
            return Values(all.begin() + d * size, all.begin() + (d + 1) * size);
        };
        one.w = half(node.w);
        one.r = half(node.r);
        std::fill(one.b.begin(), one.b.end(), 0.0f);
        std::vector<double> h(static_cast<std::size_t>(batch * hidden), 0);
        for (std::int64_t i = 0; i < steps; ++i) {
            const std::int64_t t = d == 0 ? i : steps - 1 - i;
            const std::vector<double> old = h;
            for (std::int64_t n = 0; n < batch; ++n)
                for (std::int64_t j = 0; j < hidden; ++j) {
                    const double s = one.sum(t, n, 0, j, old);
                    const double y =
                        d == 0 ? (s >= 0 ? s : 0.25 * s) : std::clamp(0.125 * s + 0.375, 0.0, 1.0);
                    h[static_cast<std::size_t>(n * hidden + j)] = y;
                    expected[static_cast<std::size_t>(((t * 2 + d) * batch + n) * hidden + j)] = y;
                }
        }
    }
    check_near(model, {{"x", node.x}}, expected);
}

TEST_CASE("usual LSTM and GRU become the project's own operators") {
    const auto kinds = [](const Model& model) { return types(open(model)); };
    const std::vector<std::string> inputs{"x", "w", "r", "b"};
    CHECK(kinds(Node("LSTM", 4).model(inputs, {}, "Y")) == "LSTM Reshape");
    CHECK(kinds(Node("LSTM", 4).model(inputs, {}, "Y_h")) == "LSTM");
    const std::string both = attribute("direction", std::string("bidirectional"));
    CHECK(
        kinds(Node("GRU", 3, 2).model(inputs, {both, attribute("linear_before_reset", 1)}, "Y")) ==
        "GRU Reshape Transpose");
    CHECK(!has(kinds(Node("GRU", 3).model(inputs, {}, "Y")), "GRU"));
    CHECK(
        !has(kinds(Node("LSTM", 4).model(inputs, {number_attribute("clip", 3.0f)}, "Y")), "LSTM"));
}

TEST_CASE("the project's own operators compute what steps compute") {
    const std::string both = attribute("direction", std::string("bidirectional"));
    const std::string huge =
        number_attribute("clip", 1e9f);  // changes nothing, but is none of theirs
    for (const std::int64_t gates : {3, 4}) {
        const Node node(gates == 4 ? "LSTM" : "GRU", gates, 2);
        std::vector<std::string> inputs{"x", "w", "r", "b", "", "h"}, attributes{both};
        if (gates == 4) inputs.push_back("c");
        if (gates == 3) attributes.push_back(attribute("linear_before_reset", 1));
        for (const std::string output : {"Y", "Y_h"}) {
            attributes.push_back(huge);
            const Values steps_give = run(node.model(inputs, attributes, output), {{"x", node.x}});
            attributes.pop_back();
            check_near(node.model(inputs, attributes, output), {{"x", node.x}},
                       std::vector<double>(steps_give.begin(), steps_give.end()));
        }
    }
}

TEST_CASE("a session bounds the steps of a recurrent operator") {
    const Node node("RNN", 1);
    dlprim::ONNXSessionOptions options;
    options.max_iterations = steps - 1;
    Session session = open_session(node.model({"x", "w", "r"}, {}, "Y"), options);
    CHECK(has(session.error({{"x", tensor({steps, batch, features}, node.x)}}),
              "[RNN 'n', opset 17] there are more than 3 steps"));
}

TEST_CASE("what a recurrent operator refuses names the operator, its version and the node") {
    const Node node("LSTM", 4);
    const auto refused = [&](const std::vector<std::string>& inputs, const std::string& option,
                             dlprim::ErrorKind kind, const std::string& words) {
        const std::string text = error_of(node.model(inputs, {option}, "Y").str(), kind);
        CHECK(has(text, words));
        CHECK(has(text, "[LSTM 'n', opset 17]"));
    };
    refused({"x", "w", "r"}, texts_attribute("activations", {"Sigmoid", "Tanh", "Swish"}),
            dlprim::ErrorKind::unsupported, "activation 'Swish' is not known");
    refused({"x", "w", "r"}, texts_attribute("activations", {"Tanh"}), dlprim::ErrorKind::format,
            "activations names 1 functions, 3 are needed");
    refused({"x", "w", "r"}, attribute("direction", std::string("up")), dlprim::ErrorKind::format,
            "direction 'up' is none of forward, reverse and bidirectional");
    refused({"x", "w", "w"}, attribute("layout", 0), dlprim::ErrorKind::format,
            "hidden_size is 2, the recurrence weight has shape [1, 8, 3]");
    refused({"x", "w", "r", "h"}, attribute("layout", 0), dlprim::ErrorKind::format,
            "input 3 has shape [1, 2, 2], it must be [1, 16]");
}
