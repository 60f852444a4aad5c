// SPDX-License-Identifier: MIT
// Types of ONNX that only store, and integers of 64 bits without a sign.
#include "onnx/session_support.hpp"

using namespace onnx_test;

namespace {

constexpr int type_uint64 = 13, type_int4 = 22, type_float8 = 17, type_power = 24;

/// "y" as floats, after a cast to a type and back.
Model through(int type, const std::vector<std::string>& attributes) {
    Model model;
    std::vector<std::string> all = attributes;
    all.push_back(attribute("to", type));
    model.nodes = {node("Cast", {"x"}, {"narrow"}, {all}),
                   node("Cast", {"narrow"}, {"y"}, {{attribute("to", type_float)}})};
    model.inputs = {value("x", {-1})};
    model.outputs = {value("y", {-1})};
    model.opset = 25;
    return model;
}

}  // namespace

TEST_CASE("floats of 8 bits saturate, or do not") {
    const auto x = tensor({5}, {0.3f, 1000, -1000, 448, 1e-9f});
    Session bounded = open_session(through(type_float8, {}));
    CHECK(bounded.run({{"x", x}}) == "float [5]: 0.3125 448 -448 448 0");
    Session open = open_session(through(type_float8, {attribute("saturate", std::int64_t{0})}));
    const std::string y = open.run({{"x", x}});
    CHECK((y == "float [5]: 0.3125 nan nan 448 0" || y == "float [5]: 0.3125 nan -nan 448 0"));
}

TEST_CASE("powers of two are rounded up, down or to the nearest") {
    const auto x = tensor({4}, {1.1f, 1.5f, 1.9f, 4});
    const auto round = [&](const std::string& mode) {
        Session session = open_session(through(type_power, {attribute("round_mode", mode)}));
        return session.run({{"x", x}});
    };
    CHECK(round("up") == "float [4]: 2 2 2 4");
    CHECK(round("down") == "float [4]: 1 1 1 4");
    CHECK(round("nearest") == "float [4]: 1 2 2 4");
}

TEST_CASE("integers of 4 bits share bytes, and are quantised") {
    Model model{.nodes = {node("DequantizeLinear", {"q", "scale"}, {"z"}),
                          node("Add", {"x", "z"}, {"sum"}),
                          node("QuantizeLinear", {"sum", "scale"}, {"small"},
                               {{attribute("output_dtype", type_int4)}}),
                          node("Cast", {"small"}, {"y"}, {{attribute("to", type_int64)}})}};
    // 1, -1 and -8, the first one in the low bits.
    model.initializers = {onnx_bytes::tensor("q", {3}, type_int4, std::string("\xf1\x08")),
                          floats("scale", {}, {0.5f})};
    model.inputs = {value("x", {3})};
    model.outputs = {value("y", {3}, type_int64)};
    model.opset = 25;
    Session session = open_session(model);
    CHECK(session.run({{"x", tensor({3}, {0, 0, 0})}}) == "int64 [3]: 1 -1 -8");
    CHECK(session.run({{"x", tensor({3}, {100, -100, 1})}}) == "int64 [3]: 7 -8 -6");
    model.nodes[1] = node("Add", {"q", "q"}, {"sum"});
    Session wrong = open_session(model);
    CHECK(has(wrong.error({{"x", tensor({3}, {0, 0, 0})}}), "do not compute with int4"));
}

TEST_CASE("quotients of integers without a sign use all 64 bits") {
    Model model;
    const auto numbers = [](const std::vector<std::uint64_t>& values) {
        return value_of({static_cast<std::int64_t>(values.size())}, dlprim::DType::u64, values);
    };
    model.nodes = {node("Div", {"a", "b"}, {"q"}),      node("Mul", {"q", "b"}, {"p"}),
                   node("Sub", {"a", "p"}, {"r"}),      node("Mod", {"a", "b"}, {"m"}),
                   node("Less", {"r", "b"}, {"less"}),  node("Equal", {"r", "m"}, {"same"}),
                   node("And", {"less", "same"}, {"y"})};
    model.inputs = {value("a", {5}, type_uint64), value("b", {5}, type_uint64)};
    model.outputs = {value("y", {5}, type_bool)};
    Session session = open_session(model);
    const std::uint64_t most = ~std::uint64_t{0}, half = std::uint64_t{1} << 63;
    CHECK(session.run({{"a", numbers({most, most, half, most, 7})},
                       {"b", numbers({1, 3, half + 1, half, 2})}}) == "bool [5]: 1 1 1 1 1");
}

TEST_CASE("bits become another type of the same size alone") {
    Model model{.nodes = {node("BitCast", {"x"}, {"y"}, {{attribute("to", type_int64)}})},
                .inputs = {value("x", {2})},
                .outputs = {value("y", {2}, type_int64)},
                .opset = 26};
    Session session = open_session(model);
    CHECK(has(session.error({{"x", tensor({2}, {1, 2})}}),
              "elements of float and int64 are not of the same size"));
    model.nodes = {node("BitCast", {"x"}, {"y"}, {{attribute("to", 6)}})};
    model.outputs = {value("y", {2}, 6)};
    Session bits = open_session(model);
    CHECK(bits.run({{"x", tensor({2}, {1, -0.0f})}}) == "int32 [2]: 1.06535e+09 -2.14748e+09");
}
