// SPDX-License-Identifier: MIT
// Quantised operators: sums that no float holds, scales for each channel and block, and what is
// refused.
#include "onnx/device_support.hpp"

#include <algorithm>
#include <cmath>

using namespace onnx_test;
using dlprim::DType;
using dlprim::Shape;

namespace {

constexpr DType u8 = DType::u8, i8 = DType::i8, i32 = DType::i32;

/// A 3x3 convolution of [1, 2 groups x channels, 5, 5] with padding 1 on all sides but the right.
struct Convolution {
    std::int64_t groups = 2, channels = 40, out = 4, size = 5;
    Sizes x = scattered(groups * channels * size * size, 256, 3);
    Sizes w = scattered(out * channels * 9, 256, 5);
    std::int64_t x_zero = 250;
    Sizes w_zero{0, -100, 127, 3};

    std::int64_t width() const { return size - 1; }
    Sizes sums() const {
        Sizes y;
        for (std::int64_t o = 0; o < out; ++o)
            for (std::int64_t row = 0; row < size; ++row)
                for (std::int64_t column = 0; column < width(); ++column)
                    y.push_back(sum(o, row, column));
        return y;
    }
    std::int64_t sum(std::int64_t o, std::int64_t row, std::int64_t column) const {
        std::int64_t total = 0;
        for (std::int64_t c = 0; c < channels; ++c)
            for (std::int64_t k = 0; k < 9; ++k) {
                const std::int64_t i = row + k / 3 - 1, j = column + k % 3 - 1;
                if (i < 0 || i >= size || j < 0 || j >= size) continue;
                const std::int64_t from = o / (out / groups) * channels + c;
                total += (x[index((from * size + i) * size + j)] - x_zero) *
                         (w[index((o * channels + c) * 9 + k)] - 128 - w_zero[index(o)]);
            }
        return total;
    }
    static std::size_t index(std::int64_t at) { return static_cast<std::size_t>(at); }
    std::vector<std::int8_t> weights() const {
        std::vector<std::int8_t> values;
        for (const std::int64_t value : w) values.push_back(static_cast<std::int8_t>(value - 128));
        return values;
    }
};

const std::vector<std::string> convolution_attributes{attribute("group", 2),
                                                      attribute("pads", Sizes{1, 1, 1, 0})};

}  // namespace

TEST_CASE("products of bytes are exact however long their sums are") {
    constexpr std::int64_t k = 1001;  // 1001 * 255 * 255 has 26 bits
    Model model{.nodes = {node("MatMulInteger", {"a", "b", "a0", "b0"}, {"y"})},
                .inputs = {value("a", {2, k}, type_uint8), value("b", {k, 2}, type_int8),
                           value("a0", {2}, type_uint8), value("b0", {2}, type_int8)},
                .outputs = {value("y", {2, 2}, type_int32)}};
    std::vector<std::uint8_t> a(2 * k, 255);
    std::fill(a.begin() + k, a.end(), std::uint8_t{1});
    std::vector<std::int8_t> b;
    for (std::int64_t i = 0; i < k; ++i) b.push_back(127), b.push_back(-128);
    const std::int32_t high = 255 * 255 * k, low = -254 * 255 * static_cast<std::int32_t>(k);
    const std::string expected =
        text_of({2, 2}, i32, std::vector<std::int32_t>{high, -high, low, -low});
    const auto a_value = value_of({2, k}, u8, a);
    const auto a_zero = value_of({2}, u8, std::vector<std::uint8_t>{0, 255});
    check_on_devices(model,
                     {{"a", a_value},
                      {"b", value_of({k, 2}, i8, b)},
                      {"a0", a_zero},
                      {"b0", value_of({2}, i8, std::vector<std::int8_t>{-128, 127})}},
                     expected);
    model.inputs = {model.inputs[0], model.inputs[2]};  // a weight that is known
    model.initializers = {onnx_bytes::tensor("b", {k, 2}, type_int8, raw(b)),
                          onnx_bytes::tensor("b0", {2}, type_int8, {'\x80', '\x7f'})};
    check_on_devices(model, {{"a", a_value}, {"a0", a_zero}}, expected);
}

TEST_CASE("3x3 convolutions of bytes are exact, with zero points for each channel") {
    const Convolution c;
    Model model{
        .nodes = {node("ConvInteger", {"x", "w", "x0", "w0"}, {"y"}, {convolution_attributes})},
        .inputs = {value("x", {1, 80, 5, 5}, type_uint8), value("w", {4, 40, 3, 3}, type_int8)},
        .outputs = {value("y", {1, 4, 5, 4}, type_int32)},
        .initializers = {onnx_bytes::tensor("x0", {}, type_uint8, "\xfa"),
                         onnx_bytes::tensor("w0", {4}, type_int8, raw(as<std::int8_t>(c.w_zero)))}};
    const std::string expected = text_of({1, 4, 5, 4}, i32, as<std::int32_t>(c.sums()));
    const auto x = value_of({1, 80, 5, 5}, u8, as<std::uint8_t>(c.x));
    check_on_devices(model, {{"x", x}, {"w", value_of({4, 40, 3, 3}, i8, c.weights())}}, expected);
    model.inputs.pop_back();
    model.initializers.push_back(
        onnx_bytes::tensor("w", {4, 40, 3, 3}, type_int8, raw(c.weights())));
    check_on_devices(model, {{"x", x}}, expected);
    // No window is 3x3, of which Winograd's algorithm makes inexact sums.
    for (const auto& op : dlprim::describe(open(model)).operators)
        if (op.type == "Convolution") CHECK(has(op.options, "\"kernel\": [3, 4]"));
}

TEST_CASE("the host multiplies bytes as integers, of known weights and of computed ones") {
    Model model{
        .nodes = {node("ConvInteger", {"x", "w", "x0"}, {"y"}),
                  node("MatMulInteger", {"x", "x", "x0", "x0"}, {"z"})},
        .inputs = {value("x", {1, 2, 5, 5}, type_uint8), value("x0", {}, type_uint8)},
        .outputs = {value("y", {1, 1, 3, 3}, type_int32), value("z", {1, 2, 5, 5}, type_int32)},
        .initializers = {onnx_bytes::tensor("w", {1, 2, 3, 3}, type_int8, std::string(18, 'w'))}};
    const Folder folder;
    const std::string path = folder.write("model.onnx", model.str());
    dlprim::Net net = dlprim::Net::from_onnx_file(dlprim::Context("cpu"), path);
    std::vector<std::string> engines;
    for (const dlprim::NodeReport& made : net.nodes())
        if (made.type == "Convolution" || made.type == "MatMul") engines.push_back(made.engine);
    CHECK(engines == std::vector<std::string>{"conv2d.host_integers", "matmul.host_integers"});
}

TEST_CASE("a quantised convolution has a scale for each channel and a bias") {
    const Convolution c;
    const Values scales{0.5, 0.25, 1, 0.125};
    const std::vector<std::int32_t> bias{1000, -2000, 0, 77777};
    Model model{
        .nodes = {node("QLinearConv", {"x", "xs", "x0", "w", "ws", "w0", "ys", "y0", "b"}, {"y"},
                       {convolution_attributes})},
        .inputs = {value("x", {1, 80, 5, 5}, type_uint8)},
        .outputs = {value("y", {1, 4, 5, 4}, type_int8)},
        .initializers = {floats("xs", {}, {0.5}), onnx_bytes::tensor("x0", {}, type_uint8, "\xfa"),
                         onnx_bytes::tensor("w", {4, 40, 3, 3}, type_int8, raw(c.weights())),
                         floats("ws", {4}, scales),
                         onnx_bytes::tensor("w0", {4}, type_int8, raw(as<std::int8_t>(c.w_zero))),
                         floats("ys", {}, {4096}), onnx_bytes::tensor("y0", {}, type_int8, "\xf0"),
                         onnx_bytes::tensor("b", {4}, type_int32, raw(bias))}};
    const Sizes sums = c.sums();
    std::vector<std::int8_t> expected;
    for (std::size_t i = 0; i < sums.size(); ++i) {
        const std::size_t o = i / 20;
        const double real = static_cast<double>(sums[i] + bias[o]) * 0.5 * scales[o] / 4096;
        expected.push_back(
            static_cast<std::int8_t>(std::clamp(std::nearbyint(real) - 16, -128.0, 127.0)));
    }
    check_on_devices(model, {{"x", value_of({1, 80, 5, 5}, u8, as<std::uint8_t>(c.x))}},
                     text_of({1, 4, 5, 4}, i8, expected));
}

TEST_CASE("blocks of an axis have scales and zero points of their own") {
    Model model{
        .nodes = {node("QuantizeLinear", {"x", "s", "z"}, {"q"},
                       {{attribute("axis", -1), attribute("block_size", 2)}}),
                  node("DequantizeLinear", {"q", "s", "z"}, {"y"},
                       {{attribute("axis", 1), attribute("block_size", 2)}})},
        .inputs = {value("x", {2, 3})},
        .outputs = {value("y", {2, 3})},
        .initializers = {floats("s", {2, 2}, {1, 2, 4, 8}),
                         onnx_bytes::tensor("z", {2, 2}, type_int8, {'\0', '\1', '\2', '\3'})},
        .opset = 21};
    // Ties go to even; beyond the range stay its ends, where 127 - 1 times 2 is 252.
    check_on_devices(model, {{"x", tensor({2, 3}, {0.5, 1.5, 1000, 2, 6, -4})}},
                     "float [2, 3]: 0 2 252 0 8 0");
}

TEST_CASE("of an input that is all zeros the scale is 1") {
    check_on_devices({.nodes = {node("DynamicQuantizeLinear", {"x"}, {"q", "scale", "zero"}),
                                node("DequantizeLinear", {"q", "scale", "zero"}, {"y"})},
                      .inputs = {value("x", {2})},
                      .outputs = {value("y", {2})}},
                     {{"x", tensor({2}, {0, 0})}}, "float [2]: 0 0");
}

TEST_CASE("a share of all stays in the range of its type") {
    check_on_devices({.nodes = {node("QLinearSoftmax", {"x", "s", "z", "share", "least"}, {"y"},
                                     {{attribute("opset", 13)}, "", "com.microsoft"})},
                      .inputs = {value("x", {1, 2}, type_int8)},
                      .outputs = {value("y", {1, 2}, type_int8)},
                      .initializers = {floats("s", {}, {1}), floats("share", {}, {1.0f / 256}),
                                       onnx_bytes::tensor("z", {}, type_int8, {'\3'}),
                                       onnx_bytes::tensor("least", {}, type_int8, "\x80")},
                      .domains = {{"com.microsoft", 1}}},
                     {{"x", value_of<std::int8_t>({1, 2}, i8, {127, -128})}},
                     text_of<std::int8_t>({1, 2}, i8, {127, -128}));
}

TEST_CASE("packed weights that are not supported are named") {
    const auto refused = [](std::int64_t bits, std::int64_t packed, const std::string& words) {
        Model model{
            .nodes = {node("MatMulNBits", {"x", "w", "s"}, {"y"},
                           {{attribute("K", 16), attribute("N", 1), attribute("bits", bits),
                             attribute("block_size", 16), attribute("weight_prepacked", packed)},
                            "n",
                            "com.microsoft"})},
            .inputs = {value("x", {2, 16})},
            .outputs = {value("y", {2, 1})},
            .initializers = {onnx_bytes::tensor("w", {1, 1, 8}, type_uint8, "12345678"),
                             floats("s", {1}, {1})},
            .domains = {{"com.microsoft", 1}}};
        const std::string text = error_of(model.str(), dlprim::ErrorKind::unsupported);
        CHECK(has(text, "[com.microsoft.MatMulNBits 'n', opset 1] " + words));
    };
    refused(3, 0, "weights of 3 bits are not supported");
    refused(4, 1, "packed weights are not supported");
}

TEST_CASE("what quantised operators refuse names the operator, its version and the node") {
    const auto refused = [](const std::string& nodes, int type, dlprim::ErrorKind kind,
                            const std::string& words) {
        Model model{.nodes = {nodes},
                    .inputs = {value("x", {2, 3}, type)},
                    .outputs = {value("y", {2, 3})},
                    .initializers = {floats("s", {2}, {1, 2}), floats("one", {}, {1})},
                    .opset = 21};
        const std::string text = error_of(model.str(), kind);
        CHECK(has(text, words));
        CHECK(has(text, "'n', opset 21]"));
    };
    refused(node("QuantizeLinear", {"x", "s"}, {"y"}, {{attribute("axis", 1)}, "n"}), type_float,
            dlprim::ErrorKind::format,
            "a scale or zero point of shape [2] for an input of shape [2, 3], axis 1");
    refused(node("QuantizeLinear", {"x", "one"}, {"y"}, {{attribute("output_dtype", 14)}, "n"}),
            type_float, dlprim::ErrorKind::unsupported, "type complex64 is not supported");
    refused(node("QuantizeLinear", {"x", "one"}, {"y"}, {{attribute("output_dtype", 6)}, "n"}),
            type_float, dlprim::ErrorKind::unsupported,
            "a quantised tensor of int32 is not supported");
    refused(node("MatMulInteger", {"x", "x"}, {"y"}, {{}, "n"}), type_int32,
            dlprim::ErrorKind::format, "a factor is int32; it must be uint8 or int8");
}
