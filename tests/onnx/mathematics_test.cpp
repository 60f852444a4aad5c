// SPDX-License-Identifier: MIT
// Einsum, determinants, Fourier transforms, windows, bits and updates of parameters, beyond ONNX's
// own cases.
#include "onnx/device_support.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

using namespace onnx_test;
using dlprim::DType;

namespace {

Model one_node(const std::string& nodes, const std::vector<std::string>& inputs,
               const std::vector<std::string>& initializers, const Sizes& y,
               int type = type_float) {
    Model model{.nodes = {nodes},
                .inputs = inputs,
                .outputs = {value("y", y, type)},
                .initializers = initializers,
                .opset = 20};
    return model;
}

std::string einsum(const std::string& equation, const std::vector<std::string>& inputs) {
    return node("Einsum", inputs, {"y"}, {{attribute("equation", equation)}, "n"});
}

constexpr double pi = 3.14159265358979323846;

}  // namespace

TEST_CASE("terms of an equation broadcast by their dots and sum what is needed no more") {
    // y[d, i] = sum over j, k of a[d, i, j] b[1, j, k] c[k], and sum over m of e[m].
    const Values a{1, 2, 3, 4, 5, 6, 7, 8}, b{1, -1, 2, 0.5}, c{3, 4}, e{0.5, 1.5};
    std::vector<double> expected;
    for (std::size_t row = 0; row < 4; ++row) {
        double sum = 0;
        for (std::size_t j = 0; j < 2; ++j)
            for (std::size_t k = 0; k < 2; ++k) sum += a[row * 2 + j] * b[j * 2 + k] * c[k];
        expected.push_back(sum * 2);
    }
    check_near(
        one_node(einsum("...ij, ...jk, k, m -> ...i", {"a", "b", "c", "e"}),
                 {value("a", {2, 2, 2}), value("b", {1, 2, 2}), value("c", {2}), value("e", {2})},
                 {}, {2, 2}),
        {{"a", a}, {"b", b}, {"c", c}, {"e", e}}, expected);
}

TEST_CASE("without an arrow letters that stand once are the output, in their order") {
    Model model = one_node(einsum("ba,cb", {"a", "b"}),
                           {value("a", {2, 3}, type_int32), value("b", {2, 2}, type_int32)}, {},
                           {3, 2}, type_int32);
    const auto ints = [](const Sizes& shape, const std::vector<std::int32_t>& values) {
        return value_of(dlprim::Shape(shape), DType::i32, values);
    };
    // Integers are exact: 20000001 is more than a float counts to.
    check_on_devices(
        model, {{"a", ints({2, 3}, {1, 2, 20000001, 4, 5, 6})}, {"b", ints({2, 2}, {1, 0, 1, 1})}},
        text_of({3, 2}, DType::i32, std::vector<std::int32_t>{1, 5, 2, 7, 20000001, 20000007}));
}

TEST_CASE("a trace and a scalar") {
    check_near(one_node(einsum("ii", {"a"}), {value("a", {2, 2})}, {}, {}), {{"a", {1, 2, 3, 4}}},
               {5});
    check_near(
        one_node(einsum("i,->i", {"a", "b"}), {value("a", {2})}, {floats("b", {}, {3})}, {2}),
        {{"a", {1, 2}}}, {3, 6});
}

TEST_CASE("determinants exchange rows, and those of singular matrices are 0") {
    const Values x{0, 2, 1, 1, 1, 0, 3, 0, 1,  // rows must be exchanged
                   1, 2, 3, 2, 4, 6, 1, 1, 1,  // singular
                   2, 0, 0, 0, 3, 0, 0, 0, 4};
    const Model model = one_node(node("Det", {"x"}, {"y"}), {value("x", {3, 3, 3})}, {}, {3});
    check_near(model, {{"x", x}}, {-5, 0, 24});
    check_near(one_node(node("Det", {"x"}, {"y"}), {value("x", {2, 1, 1})}, {}, {2}),
               {{"x", {3, -2}}}, {3, -2});
}

TEST_CASE("transforms cut lines off or fill them with zeros, on any axis") {
    for (const std::int64_t points : {3, 6}) {
        const Model model =
            one_node(node("DFT", {"x", "n", "axis"}, {"y"}), {value("x", {4, 2, 2})},
                     {tensor("n", {}, type_int64, raw(Sizes{points})),
                      tensor("axis", {}, type_int64, raw(Sizes{-3}))},
                     {points, 2, 2});
        Values x;
        for (int i = 0; i < 16; ++i) x.push_back(static_cast<float>(i * i % 7) - 2);
        std::vector<double> expected;
        for (std::int64_t k = 0; k < points; ++k)
            for (std::size_t column = 0; column < 2; ++column) {
                double re = 0, im = 0;
                for (std::int64_t j = 0; j < std::min<std::int64_t>(points, 4); ++j) {
                    const double angle =
                        -2 * pi * static_cast<double>(j * k) / static_cast<double>(points);
                    const double a = x[static_cast<std::size_t>(j) * 4 + column * 2],
                                 b = x[static_cast<std::size_t>(j) * 4 + column * 2 + 1];
                    re += a * std::cos(angle) - b * std::sin(angle);
                    im += a * std::sin(angle) + b * std::cos(angle);
                }
                expected.push_back(re);
                expected.push_back(im);
            }
        check_near(model, {{"x", x}}, expected);
    }
}

TEST_CASE("frames of a complex signal under a computed window") {
    Model model = one_node(node("STFT", {"x", "step", "w"}, {"y"}, {{attribute("onesided", 0)}}),
                           {value("x", {1, 5, 2}), value("w", {2})},
                           {tensor("step", {}, type_int64, raw(Sizes{3}))}, {1, 2, 2, 2});
    // Frames of 2 begin at 0 and 3; their spectra are the sum and the difference.
    check_near(model, {{"x", {1, 2, 3, 4, 9, 9, 5, 6, 7, 8}}, {"w", {1, 0.5}}},
               {2.5, 4, -0.5, 0, 8.5, 10, 1.5, 2});
}

TEST_CASE("a window that is symmetric begins and ends alike") {
    Model model = one_node(node("HannWindow", {"n"}, {"w"}, {{attribute("periodic", 0)}}),
                           {value("x", {5})}, {tensor("n", {}, type_int64, raw(Sizes{5}))}, {5});
    model.nodes.push_back(node("Mul", {"x", "w"}, {"y"}));
    check_near(model, {{"x", {1, 1, 1, 1, 1}}}, {0, 0.5, 1, 0.5, 0});
}

TEST_CASE("bits of narrow integers that are shifted out are gone") {
    Model model = one_node(
        node("BitShift", {"x", "by"}, {"s"}, {{attribute("direction", std::string("LEFT"))}}),
        {value("x", {4}, type_uint8)}, {tensor("by", {4}, type_uint8, {'\1', '\7', '\x8', '\xff'})},
        {4}, type_uint8);
    model.nodes.push_back(node("BitwiseNot", {"s"}, {"y"}));
    check_on_devices(
        model, {{"x", value_of({4}, DType::u8, std::vector<std::uint8_t>{0x81, 3, 255, 255})}},
        "uint8 [4]: 253 127 255 255");
}

TEST_CASE("products up to each place, also where there is only one") {
    const auto products = [](std::int64_t exclusive, std::int64_t reverse, const Sizes& sizes,
                             std::int64_t axis) {
        Model model = one_node(
            node("CumProd", {"x", "axis"}, {"y"},
                 {{attribute("exclusive", exclusive), attribute("reverse", reverse)}, "n"}),
            {value("x", sizes)}, {integers("axis", {axis})}, sizes);
        model.opset = 26;
        return model;
    };
    const Values x{2, 3, 0.5f, -1, 4, 5};
    check_near(products(0, 0, {2, 3}, 1), {{"x", x}}, {2, 6, 3, -1, -4, -20});
    check_near(products(1, 0, {2, 3}, -1), {{"x", x}}, {1, 2, 6, 1, -1, -4});
    check_near(products(0, 1, {2, 3}, 0), {{"x", x}}, {-2, 12, 2.5, -1, 4, 5});
    check_near(products(1, 1, {2, 3}, 1), {{"x", x}}, {1.5, 0.5, 1, 20, 5, 1});
    const float infinite = std::numeric_limits<float>::infinity();
    check_near(products(1, 0, {1, 2}, 0), {{"x", {infinite, 3}}}, {1, 1});
}

TEST_CASE("an update of several parameters keeps them apart") {
    Model model = one_node(
        node("Momentum", {"r", "t", "x1", "x2", "g1", "g2", "v1", "v2"}, {"a", "b", "va", "vb"},
             {{number_attribute("alpha", 0.5f), number_attribute("beta", 0.25f),
               number_attribute("norm_coefficient", 0), attribute("mode", std::string("nesterov"))},
              "n",
              "ai.onnx.preview.training"}),
        {value("x1", {1}), value("x2", {1})},
        {floats("r", {}, {0.5}), tensor("t", {}, type_int64, raw(Sizes{3})), floats("g1", {1}, {1}),
         floats("g2", {1}, {2}), floats("v1", {1}, {4}), floats("v2", {1}, {8})},
        {4});
    model.nodes.push_back(node("Concat", {"a", "b", "va", "vb"}, {"y"}, {{attribute("axis", 0)}}));
    // v = v / 2 + g / 4; x = x - (g + v / 2) / 2.
    check_near(model, {{"x1", {10}}, {"x2", {20}}}, {8.9375, 17.875, 2.25, 4.5});
}

TEST_CASE("what these operators refuse names the operator, its version and the node") {
    const auto refused = [](const Model& model, dlprim::ErrorKind kind, const std::string& words) {
        const std::string text = error_of(model.str(), kind);
        CHECK(has(text, words));
        CHECK(has(text, " 'n', opset "));
    };
    const auto format = dlprim::ErrorKind::format;
    const std::vector<std::string> a{value("a", {2, 3})};
    refused(one_node(einsum("i->i", {"a"}), a, {}, {2}), format,
            "the term 'i' does not fit an input of shape [2, 3]");
    refused(one_node(einsum("ij->ik", {"a"}), a, {}, {2}), format,
            "a letter of the output stands in no term");
    refused(one_node(einsum("ij,jk->ik", {"a", "a"}), a, {}, {2}), format,
            "a letter stands for sizes 3 and 2");
    refused(one_node(einsum("ij,ij", {"a"}), a, {}, {2}), format,
            "the equation has more terms than there are inputs");
    refused(one_node(einsum("i3", {"a"}), a, {}, {2}), format, "the equation has '3' in it");
    refused(one_node(node("Det", {"a"}, {"y"}, {{}, "n"}), a, {}, {}), format,
            "an input of shape [2, 3] holds no square matrices");
    refused(one_node(node("DFT", {"a"}, {"y"}, {{}, "n"}), a, {}, {}), format,
            "holds neither real nor complex numbers");
    refused(one_node(node("BitShift", {"a", "a"}, {"y"},
                          {{attribute("direction", std::string("up"))}, "n"}),
                     a, {}, {}),
            format, "direction 'up' is neither LEFT nor RIGHT");
    refused(one_node(node("Adam", {"a", "a", "a"}, {"y"}, {{}, "n", "ai.onnx.preview.training"}), a,
                     {}, {}),
            format, "there are 3 inputs; R and T and groups of 4 are needed");
    refused(one_node(node("Adam", {"a"}, {"y"}, {{}, "n", "com.example"}), a, {}, {}),
            dlprim::ErrorKind::unsupported, "operators of domain 'com.example' are not supported");
}
