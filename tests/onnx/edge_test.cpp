// SPDX-License-Identifier: MIT
// Legal models at the edges of what ONNX defines: no elements, infinities and NaN, updates of whole
// tensors, products of integers. The values expected are those of ONNX Runtime and of
// onnx.reference.
#include "onnx/session_support.hpp"

#include <cmath>
#include <limits>

using namespace onnx_test;

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

/// What a node makes of the inputs x, z and s, those that are given.
std::string result(const std::string& made, const dlprim::ONNXSession::Values& inputs,
                   std::int64_t opset = 18) {
    Model model{.nodes = {made}};
    for (const auto& [name, given] : inputs) {
        const dlprim::HostTensor& tensor = given.tensor();
        const int type = tensor.dtype == dlprim::DType::i64   ? type_int64
                         : tensor.dtype == dlprim::DType::f64 ? 11
                                                              : type_float;
        model.inputs.push_back(value(name, tensor.shape.to_vector(), type));
    }
    model.outputs = {bytes(1, "y")};
    model.opset = opset;
    return open_session(model).run(inputs);
}

ONNXValue doubles(const Sizes& shape, const std::vector<double>& values) {
    return value_of(dlprim::Shape(shape), dlprim::DType::f64, values);
}
ONNXValue matrix(const Sizes& shape, const Sizes& values) {
    return value_of(dlprim::Shape(shape), dlprim::DType::i64, values);
}

}  // namespace

TEST_CASE("tensors without elements go through") {
    CHECK(result(node("Tile", {"x", "s"}, {"y"}),
                 {{"x", tensor({2, 1}, {1, 2})}, {"s", sizes({0, 3})}}) == "float [0, 3]:");
    CHECK(result(node("Split", {"x"}, {"y", "z"}, {{attribute("num_outputs", 2)}}),
                 {{"x", tensor({0, 3}, {})}}) == "float [0, 3]:");
    CHECK(result(node("Hardmax", {"x"}, {"y"}), {{"x", tensor({2, 0}, {})}}) == "float [2, 0]:");
    for (const char* const product : {"MatMul", "Gemm"}) {
        const ONNXValue x = tensor({2, 3}, {1, 2, 3, 4, 5, 6}), none = tensor({3, 0}, {});
        CHECK(result(node(product, {"x", "z"}, {"y"}), {{"x", x}, {"z", none}}) == "float [2, 0]:");
    }
    CHECK(result(node("ReduceMax", {"x"}, {"y"}, {{attribute("keepdims", 0)}}),
                 {{"x", matrix({0}, {})}}) == "int64 []: -9.22337e+18");
}

TEST_CASE("the maximum of a constant image without elements is computed at import") {
    Model model{.nodes = {node("GlobalMaxPool", {"image"}, {"y"})},
                .outputs = {bytes(1, "y")},
                .initializers = {floats("image", {1, 1, 0, 2}, {})},
                .opset = 18};
    CHECK(open_session(model).run({}) == "float [1, 1, 1, 1]: -inf");
}

TEST_CASE("infinities and NaN are what mathematics makes of them") {
    const auto sum = [](const Values& values) {
        return result(node("ReduceLogSumExp", {"x"}, {"y"}, {{attribute("keepdims", 0)}}),
                      {{"x", tensor({std::ssize(values)}, values)}});
    };
    CHECK(sum({infinity, 1}) == "float []: inf");
    CHECK(sum({-infinity, -infinity}) == "float []: -inf");
    CHECK(sum({-infinity, 2}) == "float []: 2");
    const std::string signs = result(node("Sign", {"x"}, {"y"}),
                                     {{"x", tensor({4}, {-infinity, -0.0f, 3, std::nanf("")})}});
    CHECK((signs == "float [4]: -1 0 1 nan" || signs == "float [4]: -1 0 1 -nan" ||
           signs == "float [4]: -1 -0 1 nan" || signs == "float [4]: -1 -0 1 -nan"));
}

TEST_CASE("an index without numbers names the whole tensor") {
    const std::string made = node("ScatterND", {"x", "s", "z"}, {"y"});
    CHECK(result(made, {{"x", tensor({2}, {1, 2})},
                        {"s", matrix({3, 0}, {})},
                        {"z", tensor({3, 2}, {3, 4, 5, 6, 7, 8})}}) == "float [2]: 7 8");
}

TEST_CASE("products of integers and doubles are exact") {
    const Sizes left{1, -2, 3, 4, 5, (1 << 30) + 1}, right{1, 2, 3, 4, 5, 1 << 20};
    CHECK(result(node("MatMul", {"x", "z"}, {"y"}),
                 {{"x", matrix({2, 3}, left)}, {"z", matrix({3, 2}, right)}}) ==
          "int64 [2, 2]: 10 3.14572e+06 5.36871e+09 1.1259e+15");
    CHECK(result(node("MatMul", {"x", "z"}, {"y"}),
                 {{"x", matrix({3}, {1, 2, 3})}, {"z", matrix({3}, {4, 5, 6})}}) == "int64 []: 32");
    CHECK(result(node("MatMul", {"x", "z"}, {"y"}),
                 {{"x", doubles({2}, {1, 2})}, {"z", doubles({2, 2, 1}, {1, 2, 3, 4})}}) ==
          "double [2, 1]: 5 11");
    CHECK(result(node("Gemm", {"x", "z", "s"}, {"y"}, {{attribute("transA", 1)}}),
                 {{"x", doubles({2, 1}, {1, 2})},
                  {"z", doubles({2, 2}, {1, 2, 3, 4})},
                  {"s", doubles({1}, {0.5})}}) == "double [1, 2]: 7.5 10.5");
    Model model{.nodes = {node("MatMul", {"x", "z"}, {"y"})},
                .inputs = {value("x", {2, 3}, type_int64), value("z", {1, 2}, type_int64)},
                .outputs = {bytes(1, "y")}};
    CHECK(
        has(open_session(model).error({{"x", matrix({2, 3}, left)}, {"z", matrix({1, 2}, {1, 2})}}),
            "do not fit"));
}

TEST_CASE("padding with a number that a double does not hold is refused") {
    Model model{
        .nodes = {node("Pad", {"x", "pads", "number"}, {"y"})},
        .inputs = {value("x", {2}, type_int64)},
        .outputs = {bytes(1, "y")},
        .initializers = {integers("pads", {1, 0}),
                         onnx_bytes::tensor("number", {}, type_int64,
                                            raw<std::int64_t>({(std::int64_t{1} << 53) + 1}))}};
    CHECK(has(open_session(model).error({{"x", sizes({1, 2})}}), "does not hold exactly"));
}

TEST_CASE("a NaN stays where it is in an image of another size") {
    Session session = open_session({.nodes = {node("Resize", {"x", "", "scales"}, {"y"})},
                                    .inputs = {value("x", {1, 1, 1, 3})},
                                    .outputs = {bytes(1, "y")},
                                    .initializers = {floats("scales", {4}, {1, 1, 1, 2})}});
    CHECK(session.run({{"x", tensor({1, 1, 1, 3}, {1, infinity, 3})}}) ==
          "float [1, 1, 1, 6]: 1 1 inf inf 3 3");
}

TEST_CASE("sizes that keep an image's shape scale it by one factor") {
    // 2 x 3 becomes 3 x 5 by 1.5: the last column would be the fifth of 4.5.
    Session session = open_session(
        {.nodes = {node("Resize", {"x", "", "", "sizes"}, {"y"},
                        {{attribute("mode", std::string("linear")), attribute("axes", Sizes{2, 3}),
                          attribute("keep_aspect_ratio_policy", std::string("not_smaller"))}})},
         .inputs = {value("x", {1, 1, 2, 3})},
         .outputs = {bytes(1, "y")},
         .initializers = {integers("sizes", {3, 3})},
         .opset = 18});
    CHECK(session.run({{"x", tensor({1, 1, 2, 3}, {0, 3, 6, 0, 3, 6})}}) ==
          "float [1, 1, 3, 5]: 0 1.5 3.5 5.5 6 0 1.5 3.5 5.5 6 0 1.5 3.5 5.5 6");
}

TEST_CASE("integers of a resized image are rounded once") {
    Session session = open_session({.nodes = {node("Resize", {"x", "", "scales"}, {"y"},
                                                   {{attribute("mode", std::string("linear"))}})},
                                    .inputs = {value("x", {2, 2}, type_int64)},
                                    .outputs = {bytes(1, "y")},
                                    .initializers = {floats("scales", {2}, {2, 2})}});
    // The second row is (2 + 2.5, ...) / 4 of the rows' own 1.5 and 3.5 before they are rounded.
    CHECK(session.run({{"x", matrix({2, 2}, {0, 6, 2, 9})}}) ==
          "int64 [4, 4]: 0 1 4 6 0 2 5 6 1 3 6 8 2 3 7 9");
}

TEST_CASE("a cubic curve goes on beyond the border, as PyTorch has it") {
    Session session =
        open_session({.nodes = {node("GridSample", {"x", "z"}, {"y"},
                                     {{attribute("mode", std::string("cubic")),
                                       attribute("padding_mode", std::string("border"))}})},
                      .inputs = {value("x", {1, 1, 1, 4}), value("z", {1, 1, 3, 2})},
                      .outputs = {bytes(1, "y")},
                      .opset = 20});
    // At -0.3, 3.3 and far outside.
    CHECK(session.run({{"x", tensor({1, 1, 1, 4}, {1, 2, 4, 3})},
                       {"z", tensor({1, 1, 3, 2}, {-0.9f, 0, 0.9f, 0, 9, 0})}}) ==
          "float [1, 1, 1, 3]: 0.88975 2.88975 3");
}

TEST_CASE("a box has as many samples as its size in float") {
    // 5 * 0.8 is 4 in float and a little more in double: two points in each half, not three.
    Session session = open_session(
        {.nodes = {node("RoiAlign", {"x", "z", "s"}, {"y"},
                        {{attribute("mode", std::string("max")), attribute("output_width", 2),
                          number_attribute("spatial_scale", 0.8f)}})},
         .inputs = {value("x", {1, 1, 1, 6}), value("z", {1, 4}), value("s", {1}, type_int64)},
         .outputs = {bytes(1, "y")}});
    CHECK(session.run({{"x", tensor({1, 1, 1, 6}, {0, 1, 2, 3, 4, 5})},
                       {"z", tensor({1, 4}, {0, 0, 5, 1})},
                       {"s", sizes({0})}}) == "float [1, 1, 1, 2]: 1 3");
}
