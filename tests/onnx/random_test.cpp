// SPDX-License-Identifier: MIT
// Random operators: distributions, and the same numbers on every device and in every run.
#include "onnx/device_support.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

using namespace onnx_test;

namespace {

constexpr std::int64_t drawn = 20000;

Model random_model(const std::string& nodes, int type = type_float) {
    Model model{.nodes = {nodes},
                .inputs = {value("x", {drawn})},
                .outputs = {value("y", {-1}, type)},
                .opset = 17};
    return model;
}

/// The floats of output "y" on every device, checked to be the same twice.
std::vector<Values> results(const Model& model, const Values& x) {
    std::vector<Values> all;
    for (const dlprim::Context& device : dlprim::testing::test_devices()) {
        const Folder folder;
        dlprim::Net net =
            dlprim::Net::from_onnx_file(device, folder.write("model.onnx", model.str()));
        all.push_back(run(net, {{"x", x}}));
        CHECK(run(net, {{"x", x}}) == all.back());
    }
    return all;
}

struct Moments {
    double mean = 0, deviation = 0;
    explicit Moments(const Values& values) {
        for (const float v : values) mean += v / static_cast<double>(values.size());
        for (const float v : values) deviation += (v - mean) * (v - mean);
        deviation = std::sqrt(deviation / static_cast<double>(values.size()));
    }
};

std::string seed(float value) {
    return number_attribute("seed", value);
}

}  // namespace

TEST_CASE("uniform and normal numbers have the mean and deviation that are asked for") {
    const Values x(drawn, 0.0f);
    for (const Values& y : results(random_model(node("RandomUniformLike", {"x"}, {"y"},
                                                     {{number_attribute("low", -1),
                                                       number_attribute("high", 3), seed(5)}})),
                                   x)) {
        const Moments m(y);
        CHECK(m.mean == Approx(1).margin(0.05));
        CHECK(m.deviation == Approx(4 / std::sqrt(12.0)).margin(0.05));
        CHECK(*std::min_element(y.begin(), y.end()) >= -1);
        CHECK(*std::max_element(y.begin(), y.end()) <= 3);
    }
    for (const Values& y :
         results(random_model(node("RandomNormalLike", {"x"}, {"y"},
                                   {{number_attribute("mean", 2), number_attribute("scale", 3)}})),
                 x)) {
        const Moments m(y);
        CHECK(m.mean == Approx(2).margin(0.1));
        CHECK(m.deviation == Approx(3).margin(0.1));
    }
}

TEST_CASE("another seed gives other numbers") {
    const Values x(drawn, 0.25f);
    const auto with = [&](float number) {
        return results(random_model(node("Bernoulli", {"x"}, {"y"}, {{seed(number)}})), x);
    };
    const std::vector<Values> one = with(1), two = with(2);
    for (std::size_t i = 0; i < one.size(); ++i) {
        CHECK(one[i] != two[i]);
        CHECK(one[i] == one[0]);  // on every device
        CHECK(Moments(one[i]).mean == Approx(0.25).margin(0.02));
    }
}

TEST_CASE("dropout in training drops its share, and its mask says what") {
    Model model = random_model(
        node("Dropout", {"x", "ratio", "training"}, {"d", "mask"}, {{attribute("seed", 7)}}));
    model.initializers = {floats("ratio", {}, {0.75}),
                          onnx_bytes::tensor("training", {}, type_bool, "\1")};
    // What stays is 4 times as large; the mask must be 1 there and 0 elsewhere: d - 4 mask is 0.
    model.nodes.push_back(node("Cast", {"mask"}, {"kept"}, {{attribute("to", 1)}}));
    model.nodes.push_back(node("Sum", {"d", "kept"}, {"y"}));
    for (const Values& y : results(model, Values(drawn, 1.0f))) {
        double kept = 0;
        bool agree = true;
        for (const float v : y) {
            agree = agree && (v == 0 || v == 5);
            kept += v == 5;
        }
        CHECK(agree);
        CHECK(kept / drawn == Approx(0.25).margin(0.02));
    }
}

TEST_CASE("classes are drawn by their probabilities") {
    Model model{.nodes = {node("Multinomial", {"x"}, {"drawn"},
                               {{attribute("sample_size", drawn), seed(3)}}),
                          node("Cast", {"drawn"}, {"y"}, {{attribute("to", 1)}})},
                .inputs = {value("x", {1, 3})},
                .outputs = {value("y", {1, drawn})}};
    const float none = -std::numeric_limits<float>::infinity();
    for (const Values& y : results(model, {std::log(0.25f), none, std::log(0.75f)})) {
        double last = 0;
        bool middle = false;
        for (const float v : y) {
            last += v == 2;
            middle = middle || v == 1;
        }
        CHECK(!middle);
        CHECK(last / drawn == Approx(0.75).margin(0.02));
    }
}
