// SPDX-License-Identifier: MIT
// Products with constants of a few bits, whose scales and zero points belong to blocks of
// neighbours: the library's blocks that they are stored in, results, and notes in the log.
#include "onnx/device_support.hpp"

#include <cmath>

using namespace onnx_test;

namespace {

constexpr int type_uint4 = 21, type_int4 = 22;
constexpr std::int64_t weight_rows = 5;

std::size_t place_of(std::int64_t at) {
    return static_cast<std::size_t>(at);
}

/// W [rows, columns] = scale * (integer - zero), and inputs [3, columns].
struct Weight {
    std::int64_t columns, block, bits;
    std::int64_t blocks = (columns + block - 1) / block;
    Sizes integers =
        scattered(weight_rows * columns, std::int64_t{1} << bits, 3);  ///< without a sign
    Values scales, zeros;
    Values x;

    /// Scales have 11 bits, as halves have, or more.
    Weight(std::int64_t columns_, std::int64_t block_, std::int64_t bits_, bool are_halves = true)
        : columns(columns_), block(block_), bits(bits_) {
        for (const std::int64_t i : scattered(weight_rows * blocks, 1024, 5))
            scales.push_back(static_cast<float>(1024 + i) / (1 << 17) +
                             (are_halves ? 0 : 1.0f / (1 << 24)));
        zeros.assign(scales.size(), static_cast<float>(1 << (bits - 1)));
        for (const std::int64_t i : scattered(3 * columns, 512, 7))
            x.push_back(static_cast<float>(i - 256) / 256);
    }
    void set_zeros(double unit = 1) {
        const Sizes drawn = scattered(weight_rows * blocks, std::int64_t{1} << bits, 11);
        for (std::size_t i = 0; i < zeros.size(); ++i)
            zeros[i] = static_cast<float>(static_cast<double>(drawn[i]) * unit);
    }
    double at(std::int64_t row, std::int64_t column) const {
        const std::size_t of = place_of(row * blocks + column / block);
        return static_cast<double>(scales[of]) *
               (static_cast<double>(integers[place_of(row * columns + column)]) - zeros[of]);
    }
    std::vector<double> products() const {
        std::vector<double> y;
        for (std::int64_t m = 0; m < 3; ++m)
            for (std::int64_t row = 0; row < weight_rows; ++row) {
                double sum = 0;
                for (std::int64_t column = 0; column < columns; ++column)
                    sum += at(row, column) * x[place_of(m * columns + column)];
                y.push_back(sum);
            }
        return y;
    }
    /// Numbers [rows, count], each row filled up to whole bytes.
    template <typename Number>
    std::string packed(const std::vector<Number>& numbers, std::int64_t count,
                       std::int64_t padded) const {
        std::string bytes(place_of(weight_rows * ((padded * bits + 7) / 8)), '\0');
        for (std::int64_t row = 0; row < weight_rows; ++row)
            for (std::int64_t i = 0; i < count; ++i) {
                char& byte = bytes[place_of(row * ((padded * bits + 7) / 8) + i * bits / 8)];
                byte = static_cast<char>(byte | static_cast<int>(numbers[place_of(row * count + i)])
                                                    << (i * bits % 8));
            }
        return bytes;
    }
};

/// The option `blocks` of the model's product; "" where its weights are floats.
std::string blocks_of(const dlprim::Net& net) {
    std::string found = "no product";
    for (const auto& op : dlprim::describe(net).operators)
        if (op.type == "InnerProduct") {
            const std::string key = "\"blocks\": \"";
            const std::size_t from = op.options.find(key);
            found =
                from == std::string::npos
                    ? ""
                    : op.options.substr(from + key.size(), op.options.find('"', from + key.size()) -
                                                               from - key.size());
        }
    return found;
}

void check(const Model& model, const Weight& w, const std::vector<double>& expected,
           const std::string& blocks) {
    CHECK(blocks_of(open(model)) == blocks);
    check_near(model, {{"x", w.x}}, expected);
}

enum class Zeros { none, packed, floats };

Model nbits_model(const Weight& w, Zeros zeros = Zeros::none, const std::string& y = "y") {
    Model model{.nodes = {node("MatMulNBits", {"x", "w", "s", zeros == Zeros::none ? "" : "z"}, {y},
                               {{attribute("K", w.columns), attribute("N", weight_rows),
                                 attribute("bits", w.bits), attribute("block_size", w.block)},
                                "n",
                                "com.microsoft"})},
                .inputs = {value("x", {3, w.columns})},
                .outputs = {value("y", {3, weight_rows})},
                .initializers = {onnx_bytes::tensor(
                                     "w", {weight_rows, w.blocks, w.block * w.bits / 8}, type_uint8,
                                     w.packed(w.integers, w.columns, w.blocks * w.block)),
                                 floats("s", {weight_rows * w.blocks}, w.scales)},
                .domains = {{"com.microsoft", 1}}};
    const std::string packed = w.packed(w.zeros, w.blocks, w.blocks);
    if (zeros == Zeros::packed)
        model.initializers.push_back(onnx_bytes::tensor(
            "z", {static_cast<std::int64_t>(packed.size())}, type_uint8, packed));
    if (zeros == Zeros::floats)
        model.initializers.push_back(floats("z", {weight_rows * w.blocks}, w.zeros));
    return model;
}

/// The weight as DequantizeLinear makes it: [rows, columns], or with `axis` 0 the transpose.
Model dequantized_model(const Weight& w, int axis, int type, bool has_zeros,
                        const std::vector<std::string>& nodes) {
    const bool turned = axis == 0, is_signed = type == type_int4 || type == type_int8;
    const std::int64_t shift = is_signed ? std::int64_t{1} << (w.bits - 1) : 0;
    const auto stored = [&](const auto& numbers, std::int64_t count) {
        std::string bytes(place_of(weight_rows * count * w.bits / 8 + 1), '\0');
        for (std::int64_t i = 0; i < weight_rows * count; ++i) {
            const std::int64_t from = turned ? i % weight_rows * count + i / weight_rows : i;
            const int number = static_cast<int>(numbers[place_of(from)]) - static_cast<int>(shift);
            char& byte = bytes[place_of(i * w.bits / 8)];
            byte = static_cast<char>(byte | (number & ((1 << w.bits) - 1)) << (i * w.bits % 8));
        }
        bytes.resize(place_of((weight_rows * count * w.bits + 7) / 8));
        return bytes;
    };
    const auto shape = [&](std::int64_t count) {
        return turned ? Sizes{count, weight_rows} : Sizes{weight_rows, count};
    };
    Values scales = w.scales;
    if (turned)
        for (std::size_t i = 0; i < scales.size(); ++i)
            scales[i] = w.scales[i % place_of(weight_rows) * place_of(w.blocks) +
                                 i / place_of(weight_rows)];
    Model model{
        .nodes = {node("DequantizeLinear",
                       has_zeros ? std::vector<std::string>{"q", "s", "z"}
                                 : std::vector<std::string>{"q", "s"},
                       {"w"}, {{attribute("axis", axis), attribute("block_size", w.block)}, "n"})},
        .inputs = {value("x", {3, w.columns})},
        .outputs = {value("y", {3, weight_rows})},
        .initializers = {onnx_bytes::tensor("q", shape(w.columns), type,
                                            stored(w.integers, w.columns)),
                         floats("s", shape(w.blocks), scales)},
        .opset = 21};
    if (has_zeros)
        model.initializers.push_back(
            onnx_bytes::tensor("z", shape(w.blocks), type, stored(w.zeros, w.blocks)));
    model.nodes.insert(model.nodes.end(), nodes.begin(), nodes.end());
    return model;
}

}  // namespace

TEST_CASE("MatMulNBits reads weights of 4 and 8 bits in blocks that hold them exactly") {
    for (const std::int64_t block : {32, 64, 128, 256}) {  // the last two are longer than the row
        Weight w(96, block, 4);
        check(nbits_model(w), w, w.products(), "q4_0");
        if (block > 64) continue;
        w.set_zeros();
        check(nbits_model(w, Zeros::packed), w, w.products(), "q5_0");
        w.scales.assign(w.scales.size(), 0.03125f);  // times a zero point it is a half
        check(nbits_model(w, Zeros::packed), w, w.products(), "q4_1");
        w.set_zeros(0.75);
        check(nbits_model(w, Zeros::floats), w, w.products(), "q4_1");
    }
    Weight w(64, 32, 8);
    check(nbits_model(w), w, w.products(), "q8_0");
    for (std::int64_t& integer : w.integers) integer = 40 + integer % 100;
    for (float& zero : w.zeros) zero = 90;
    check(nbits_model(w, Zeros::packed), w, w.products(), "q8_0");
    const Weight two(64, 32, 2);
    check(nbits_model(two), two, two.products(), "q4_0");
}

TEST_CASE("weights that no block holds exactly are floats, and the log says why") {
    std::string last;
    dlprim::set_log([&](dlprim::LogLevel, std::string_view line) { last = line; });
    const auto unpacked = [&](const Weight& w, Zeros zeros, const std::string& reason) {
        last.clear();
        const Model model = nbits_model(w, zeros);
        CHECK(blocks_of(open(model)).empty());
        CHECK(last ==
              "node 'n' (MatMulNBits): its weights are unpacked to floats, because " + reason);
        check_near(model, {{"x", w.x}}, w.products());
    };
    unpacked(Weight(64, 16, 4), Zeros::none, "scales of 16 weights are too many for blocks of 32");
    unpacked(Weight(48, 16, 4), Zeros::none, "a row has 48 weights, which is no multiple of 32");
    Weight w(64, 32, 8);
    w.set_zeros();
    w.integers[0] = 255;
    w.zeros[0] = 0;
    w.integers[1] = 0;
    w.zeros[place_of(w.blocks)] = 255;
    w.integers[place_of(w.columns)] = 0;
    unpacked(w, Zeros::packed, "integers and zero points differ by -255 to 255");
    w = Weight(64, 32, 4);
    w.scales[3] = 0.1f;
    unpacked(w, Zeros::none, "a scale of 0.1 is no number of 16 bits");
    w = Weight(64, 32, 4);
    w.set_zeros(0.3);
    unpacked(w, Zeros::floats, "zero points are no integers");
    dlprim::set_log(nullptr);
}

TEST_CASE("a product reads what DequantizeLinear makes by blocks as it is stored") {
    const auto product = node("MatMul", {"x", "w"}, {"y"});
    const std::vector<std::string> turned{node("Transpose", {"w"}, {"wt"}),
                                          node("MatMul", {"x", "wt"}, {"y"})};
    const auto gemm = [](std::int64_t transposed) {
        return node("Gemm", {"x", "w"}, {"y"}, {{attribute("transB", transposed)}});
    };
    Weight four(64, 32, 4);
    check(dequantized_model(four, 0, type_int4, false, {product}), four, four.products(), "q4_0");
    check(dequantized_model(four, 0, type_uint4, true, {gemm(0)}), four, four.products(), "q4_0");
    check(dequantized_model(four, 1, type_int4, false, {gemm(1)}), four, four.products(), "q4_0");
    check(dequantized_model(four, 1, type_uint4, true, turned), four, four.products(), "q4_0");
    four.set_zeros();
    check(dequantized_model(four, 1, type_int4, true, turned), four, four.products(), "q5_0");
    four.scales.assign(four.scales.size(), 0.03125f);
    check(dequantized_model(four, 0, type_int4, true, {product}), four, four.products(), "q4_1");
    const Weight eight(64, 32, 8);
    check(dequantized_model(eight, 0, type_int8, false, {product}), eight, eight.products(),
          "q8_0");
    check(dequantized_model(eight, 1, type_uint8, true, {gemm(1)}), eight, eight.products(),
          "q8_0");
    // Blocks along the columns of the product, over which nothing is summed, are no blocks of it.
    Model across = dequantized_model(four, 1, type_int4, false, {product});
    across.inputs = {value("x", {3, weight_rows})};
    across.outputs = {value("y", {3, four.columns})};
    CHECK(blocks_of(open(across)) != "q4_0");
}

TEST_CASE("a bias behind a product in blocks is its own, and a scale stays behind it") {
    const Weight w(64, 32, 4);
    Model model = nbits_model(w, Zeros::none, "p");
    model.outputs = {value("y", {3, weight_rows})};
    model.nodes.push_back(node("Mul", {"p", "two"}, {"t"}));
    model.nodes.push_back(node("Add", {"t", "bias"}, {"y"}));
    model.initializers.push_back(floats("two", {}, {2}));
    model.initializers.push_back(floats("bias", {weight_rows}, {1, 2, 3, 4, 5}));
    std::vector<double> expected = w.products();
    for (std::size_t i = 0; i < expected.size(); ++i)
        expected[i] = 2 * expected[i] + static_cast<double>(i % place_of(weight_rows) + 1);
    check(model, w, expected, "q4_0");
    model.nodes[1] = node("Add", {"p", "bias"}, {"t"});
    model.nodes[2] = node("Identity", {"t"}, {"y"});
    expected = w.products();
    for (std::size_t i = 0; i < expected.size(); ++i)
        expected[i] += static_cast<double>(i % place_of(weight_rows) + 1);
    check(model, w, expected, "q4_0");
}

TEST_CASE("blocks that do not fit name the node") {
    const auto refused = [](Model model, const std::string& words) {
        const std::string text = error_of(model.str(), dlprim::ErrorKind::format);
        CHECK(has(text, words));
        CHECK(has(text, " 'n', opset "));
    };
    const Weight w(64, 32, 4);
    Model model = nbits_model(w);
    model.initializers[1] = floats("s", {3}, {1, 2, 3});
    refused(model, "input 2 has shape [3]; it must have the elements of [5, 2]");
    model = nbits_model(w);
    model.initializers[0] = onnx_bytes::tensor("w", {5, 2, 15}, type_uint8, std::string(150, 'w'));
    refused(model, "input 1 has shape [5, 2, 15]; it must have the elements of [5, 32]");
    const auto broken = [&](std::int64_t block, const std::vector<std::string>& inputs) {
        Model other = nbits_model(w);
        other.nodes = {node("MatMulNBits", inputs, {"y"},
                            {{attribute("K", w.columns), attribute("N", weight_rows),
                              attribute("bits", 4), attribute("block_size", block)},
                             "n",
                             "com.microsoft"})};
        return other;
    };
    refused(broken(0, {"x", "w", "s"}), "N is 5, K is 64 and block_size is 0");
    refused(broken(32, {"x", "w"}), "input 2 is missing");
    Model dequantized =
        dequantized_model(w, 0, type_int4, false, {node("MatMul", {"x", "w"}, {"y"})});
    dequantized.initializers[1] = floats("s", {3, 5}, Values(15, 1.0f));
    refused(dequantized, "a scale or zero point of shape [3, 5] for an input of shape [64, 5]");
}
