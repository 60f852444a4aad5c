// SPDX-License-Identifier: MIT
// A cache of keys and values that grows by one for each token: every run has a length of its own,
// and what plans of other lengths and equal layers share must not be seen in a result.
#include "onnx/device_support.hpp"

#include <cstddef>
#include <cstring>
#include <random>
#include <string>
#include <vector>

using namespace onnx_test;

namespace {

constexpr std::int64_t width = 16;

Values random_values(std::size_t count, unsigned seed) {
    std::mt19937 draw(seed);
    std::uniform_real_distribution<float> uniform(-0.5f, 0.5f);
    Values values(count);
    for (auto& value : values) value = uniform(draw);
    return values;
}

/// Layers of attention to the past and to the layer's own token, the first with the weights of
/// `first`.
Model attention_layers(int first, int count) {
    Model model{.nodes = {},
                .inputs = {value("x", {1, 1, width}), value("past", {1, -1, width})},
                .outputs = {value("y", {1, 1, width})}};
    std::string x = "x";
    for (int layer = 0; layer < count; ++layer) {
        const auto name = [&](const char* what) { return what + std::to_string(layer); };
        model.initializers.push_back(
            floats(name("w"), {width, width},
                   random_values(width * width, static_cast<unsigned>(first + layer))));
        const std::string y = layer + 1 == count ? "y" : name("y");
        for (const std::string& each : {
                 node("MatMul", {x, name("w")}, {name("q")}),
                 node("Concat", {"past", name("q")}, {name("k")}, {{attribute("axis", 1)}}),
                 node("Transpose", {name("k")}, {name("t")}, {{attribute("perm", Sizes{0, 2, 1})}}),
                 node("MatMul", {name("q"), name("t")}, {name("s")}),
                 node("Softmax", {name("s")}, {name("p")}, {{attribute("axis", -1)}}),
                 node("MatMul", {name("p"), name("k")}, {name("o")}),
                 node("Add", {x, name("o")}, {y}),
             })
            model.nodes.push_back(each);
        x = y;
    }
    return model;
}

dlprim::ONNXSession open_growing(const dlprim::Context& device, const Model& model) {
    const Folder folder;
    return {device, dlprim::ONNXModel(folder.write("model.onnx", model.str()))};
}

std::vector<float> token(dlprim::ONNXSession& session, const ONNXValue& x, const ONNXValue& past) {
    const auto outputs = session.run({{"x", x}, {"past", past}});
    const dlprim::HostTensor& y = outputs.at("y").tensor();
    std::vector<float> values(width);
    REQUIRE(y.data.size() == width * sizeof(float));
    std::memcpy(values.data(), y.data.data(), y.data.size());
    return values;
}

ONNXValue random_tensor(const Sizes& shape, unsigned seed) {
    const auto count = static_cast<std::size_t>(dlprim::Shape(shape).numel());
    return tensor(shape, random_values(count, seed));
}

}  // namespace

TEST_CASE("a length gives the same bits whatever lengths came before") {
    const Model model = attention_layers(0, 4);
    const ONNXValue x = random_tensor({1, 1, width}, 1);
    for (const dlprim::Context& device : dlprim::testing::test_devices()) {
        INFO(device.info().name);
        dlprim::ONNXSession session = open_growing(device, model);
        for (const std::int64_t length : scattered(50, 200)) {
            INFO(length);
            const ONNXValue past = random_tensor({1, length + 1, width}, 2);
            const std::vector<float> y = token(session, x, past);
            dlprim::ONNXSession fresh = open_growing(device, model);
            CHECK(y == token(fresh, x, past));
        }
    }
}

TEST_CASE("equal layers read their own weights") {
    const ONNXValue x = random_tensor({1, 1, width}, 1);
    for (const dlprim::Context& device : dlprim::testing::test_devices()) {
        INFO(device.info().name);
        dlprim::ONNXSession all = open_growing(device, attention_layers(0, 4));
        for (const std::int64_t length : {1, 7, 40}) {
            const ONNXValue past = random_tensor({1, length, width}, 2);
            ONNXValue at = x;
            std::vector<float> expected;
            for (int layer = 0; layer < 4; ++layer) {
                dlprim::ONNXSession one = open_growing(device, attention_layers(layer, 1));
                expected = token(one, at, past);
                at = tensor({1, 1, width}, Values(expected.begin(), expected.end()));
            }
            const std::vector<float> y = token(all, x, past);
            for (std::size_t i = 0; i < width; ++i) CHECK(y[i] == Approx(expected[i]).margin(1e-5));
        }
    }
}
