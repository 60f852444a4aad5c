// SPDX-License-Identifier: MIT
// What stands around attention, as planned for an H200: how many launches it takes, and what memory
// the last product of a language model takes together with its loss.
#include "support/catch.hpp"

#include <dlprim/dlprim.hpp>

#include <algorithm>
#include <filesystem>
#include <string>

using namespace dlprim;

namespace {

Context h200() {
    return Context("file:" + (std::filesystem::path(DLPRIM_DEVICES_DIR) / "h200.json").string());
}

Net planned(const std::string& text, Mode mode) {
    NetOptions options;
    options.mode = mode;
    options.input_gradients = mode == Mode::training;
    return Net::from_json(h200(), text, options);
}

/// The launches of nodes whose names begin with `name`.
std::ptrdiff_t launches(Net net, const std::string& name) {
    const std::vector<NodeReport> nodes = net.nodes();
    return std::count_if(nodes.begin(), nodes.end(), [&](const NodeReport& node) {
        return node.name.starts_with(name) && !node.engine.empty();
    });
}

/// One operator of x [8, 1024, 12, 64] (positions before heads) and of `inputs`, more JSON, whose
/// result is y.
std::string one(const std::string& op, const std::string& inputs = "") {
    return R"({"inputs": [{"name": "x", "shape": [8, 1024, 12, 64]})" + inputs +
           R"(], "outputs": [{"name": "y", "loss_weight": 1}], "operators": [)" + op + "]}";
}

/// The head of GPT-2 for 8 x 1024 positions, with its loss in one operator or in two.
std::string head(bool whole) {
    const std::string last =
        whole
            ? R"({"name": "loss", "type": "LinearCrossEntropy", "inputs": ["x", "label"],
                    "outputs": ["loss"], "options": {"outputs": 50257}})"
            : R"({"name": "logits", "type": "InnerProduct", "inputs": ["x"], "outputs": ["logits"],
                    "options": {"outputs": 50257, "bias": false}},
                   {"name": "loss", "type": "SoftmaxWithLoss", "inputs": ["logits", "label"],
                    "outputs": ["loss"]})";
    return R"({"inputs": [{"name": "x", "shape": [8192, 768]},
                          {"name": "label", "shape": [8192], "dtype": "int"}],
               "outputs": ["loss"], "operators": [)" +
           last + "]}";
}

}  // namespace

TEST_CASE("A rotation is one launch forward and one backward") {
    for (const int turned : {64, 16}) {
        const std::string shape = R"("shape": [1024, 1, )" + std::to_string(turned / 2) + "]}";
        const std::string angles =
            R"(, {"name": "cos", )" + shape + R"(, {"name": "sin", )" + shape;
        for (const char* interleaved : {"false", "true"}) {
            INFO(turned << " features, interleaved " << interleaved);
            const std::string text = one(
                R"({"name": "turn", "type": "RotaryEmbedding", "inputs": ["x", "cos", "sin"],
                    "outputs": ["y"], "options": {"rotary_dim": )" +
                    std::to_string(turned) + R"(, "interleaved": )" + interleaved + "}}",
                angles);
            CHECK(launches(planned(text, Mode::inference), "turn") == 1);
            // And one for the gradients of cosines and sines.
            CHECK(launches(planned(text, Mode::training), "turn") == 3);
        }
    }
}

TEST_CASE("A gate behind a product is one launch forward and one backward") {
    const std::string text = one(R"({"name": "gate", "type": "GatedActivation", "inputs": ["x"],
                                     "outputs": ["y"]})");
    CHECK(launches(planned(text, Mode::inference), "gate") == 1);
    CHECK(launches(planned(text, Mode::training), "gate") == 2);
}

TEST_CASE("Norms and softmax are one launch over their rows forward and one backward") {
    const auto text = [](const std::string& type, const std::string& options) {
        return one(R"({"name": "rows", "type": ")" + type + R"(", "inputs": ["x"],
                       "outputs": ["y"], "options": )" +
                   options + "}");
    };
    for (const std::string type : {"LayerNorm", "RMSNorm"}) {
        INFO(type);
        const std::string norm = text(type, R"({"normalized_shape": [64]})");
        CHECK(launches(planned(norm, Mode::inference), "rows") == 1);
        // The parameters' gradients are sums over all rows, by two more.
        CHECK(launches(planned(norm, Mode::training), "rows") == 3);
    }
    const std::string softmax = text("Softmax", R"({"axis": 3})");
    CHECK(launches(planned(softmax, Mode::inference), "rows") == 1);
    CHECK(launches(planned(softmax, Mode::training), "rows") == 2);
}

TEST_CASE("The loss of a language model's last product does not hold all logits") {
    constexpr std::uint64_t logits = std::uint64_t{8192} * 50257 * 4;
    const std::uint64_t whole = planned(head(true), Mode::training).planned_peak_bytes(),
                        plain = planned(head(false), Mode::training).planned_peak_bytes();
    CHECK(plain > logits);
    CHECK(whole < logits);
    CHECK(planned(head(true), Mode::inference).planned_peak_bytes() < logits / 2);
}
