// SPDX-License-Identifier: MIT
// Convolutions of three dimensions and columns that become images, against loops over their
// definitions.
#include "onnx/support.hpp"

#include <array>
#include <cmath>
#include <functional>

using namespace onnx_test;

namespace {

using Triple = std::array<int, 3>;

/// Calls `use` with every position in a box.
void each(const Triple& sizes, const std::function<void(const Triple&)>& use) {
    for (int d = 0; d < sizes[0]; ++d)
        for (int h = 0; h < sizes[1]; ++h)
            for (int w = 0; w < sizes[2]; ++w) use({d, h, w});
}

std::size_t place(std::size_t channel, const Triple& at, const Triple& sizes) {
    return ((channel * static_cast<std::size_t>(sizes[0]) + static_cast<std::size_t>(at[0])) *
                static_cast<std::size_t>(sizes[1]) +
            static_cast<std::size_t>(at[1])) *
               static_cast<std::size_t>(sizes[2]) +
           static_cast<std::size_t>(at[2]);
}

Values ramp(int count) {
    Values values;
    for (int i = 0; i < count; ++i) values.push_back(static_cast<float>((i * 7) % 11 - 5) * 0.25f);
    return values;
}

void check_close(const Values& given, const Values& expected) {
    REQUIRE(given.size() == expected.size());
    for (std::size_t i = 0; i < given.size(); ++i) {
        CAPTURE(i);
        CHECK(std::abs(given[i] - expected[i]) < 1e-4f);
    }
}

const Triple in_sizes{5, 4, 6}, kernel{3, 2, 2}, stride{2, 1, 2}, dilation{1, 2, 1}, front{1, 0, 1},
    behind{0, 1, 2};
const std::vector<std::string> window{
    attribute("strides", Sizes{2, 1, 2}), attribute("dilations", Sizes{1, 2, 1}),
    attribute("pads", Sizes{1, 0, 1, 0, 1, 2}), attribute("group", 2)};

/// Where element k of the window at `at` lies in the image that is not padded.
Triple seen(const Triple& at, const Triple& k) {
    Triple x{};
    for (std::size_t i = 0; i < 3; ++i) x[i] = at[i] * stride[i] + k[i] * dilation[i] - front[i];
    return x;
}

bool is_inside(const Triple& at, const Triple& sizes) {
    for (std::size_t i = 0; i < 3; ++i)
        if (at[i] < 0 || at[i] >= sizes[i]) return false;
    return true;
}

}  // namespace

TEST_CASE("a convolution of three dimensions in groups, with strides, dilations and padding") {
    const Values x = ramp(4 * 5 * 4 * 6), w = ramp(6 * 2 * 12), bias = ramp(6);
    Triple out{};
    for (std::size_t i = 0; i < 3; ++i)
        out[i] =
            (in_sizes[i] + front[i] + behind[i] - (kernel[i] - 1) * dilation[i] - 1) / stride[i] +
            1;
    Values expected(6 * place(1, {0, 0, 0}, out));
    for (std::size_t o = 0; o < 6; ++o)
        each(out, [&](const Triple& at) {
            float sum = bias[o];
            for (std::size_t c = 0; c < 2; ++c)
                each(kernel, [&](const Triple& k) {
                    const Triple from = seen(at, k);
                    if (is_inside(from, in_sizes))
                        sum += x[place(o / 3 * 2 + c, from, in_sizes)] *
                               w[place(o * 2 + c, k, kernel)];
                });
            expected[place(o, at, out)] = sum;
        });
    dlprim::Net net =
        open({.nodes = {node("Conv", {"x", "w", "b"}, {"y"}, {window})},
              .inputs = {value("x", {1, 4, 5, 4, 6})},
              .outputs = {value("y", {1, 6, out[0], out[1], out[2]})},
              .initializers = {floats("w", {6, 2, 3, 2, 2}, w), floats("b", {6}, bias)}});
    check_close(run(net, {{"x", x}}), expected);
}

TEST_CASE("a transposed convolution of three dimensions") {
    const Values x = ramp(4 * 5 * 4 * 6), w = ramp(4 * 3 * 12), bias = ramp(6);
    const Triple more{1, 0, 1};
    Triple out{};
    for (std::size_t i = 0; i < 3; ++i)
        out[i] = (in_sizes[i] - 1) * stride[i] + (kernel[i] - 1) * dilation[i] + 1 + more[i] -
                 front[i] - behind[i];
    Values expected(6 * place(1, {0, 0, 0}, out));
    for (std::size_t o = 0; o < 6; ++o)
        each(out, [&](const Triple& at) { expected[place(o, at, out)] = bias[o]; });
    for (std::size_t c = 0; c < 4; ++c)
        for (std::size_t o = 0; o < 3; ++o)
            each(in_sizes, [&](const Triple& at) {
                each(kernel, [&](const Triple& k) {
                    const Triple to = seen(at, k);
                    if (is_inside(to, out))
                        expected[place(c / 2 * 3 + o, to, out)] +=
                            x[place(c, at, in_sizes)] * w[place(c * 3 + o, k, kernel)];
                });
            });
    Model model;
    std::vector<std::string> attributes = window;
    attributes.push_back(attribute("output_padding", Sizes{1, 0, 1}));
    model.nodes = {node("ConvTranspose", {"x", "w", "b"}, {"y"}, {attributes})};
    model.initializers = {floats("w", {4, 3, 3, 2, 2}, w), floats("b", {6}, bias)};
    model.inputs = {value("x", {1, 4, 5, 4, 6})};
    model.outputs = {value("y", {1, 6, out[0], out[1], out[2]})};
    dlprim::Net net = open(model);
    check_close(run(net, {{"x", x}}), expected);
}

TEST_CASE("columns become an image whose last rows no window reaches") {
    Model model{.nodes = {node("Col2Im", {"x", "image", "block"}, {"y"},
                               {{attribute("strides", Sizes{2, 3})}})},
                .inputs = {value("x", {1, 4, 4})},
                .outputs = {value("y", {1, 1, 4, 6})},
                .initializers = {integers("image", {4, 6}), integers("block", {2, 2})},
                .opset = 18};
    dlprim::Net net = open(model);
    CHECK(run(net, {{"x", {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}}}) ==
          Values{1, 5, 0, 2, 6, 0, 9, 13, 0, 10, 14, 0, 3, 7, 0, 4, 8, 0, 11, 15, 0, 12, 16, 0});
    model.initializers[0] = integers("image", {5, 6});
    model.outputs = {value("y", {1, 1, 5, 6})};
    net = open(model);
    const Values larger = run(net, {{"x", Values(16, 1)}});
    CHECK(std::vector<float>(larger.end() - 6, larger.end()) == Values(6, 0));
    model.initializers[0] = integers("image", {9, 6});
    CHECK(
        has(error_of(model.str(), dlprim::ErrorKind::format), "there are 4 columns for 8 windows"));
}
