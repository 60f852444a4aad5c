// SPDX-License-Identifier: MIT
// Sessions whose models ask for work or memory without end, or mix what cannot be mixed. Each is an
// error in one sentence, or an empty tensor without the work.
#include "onnx/session_support.hpp"

#include <cmath>

using namespace onnx_test;

namespace {

/// y is made by this node of inputs that are initialisers.
Model constants(const std::string& made, const std::vector<std::string>& initializers,
                std::int64_t opset = 17) {
    Model model{
        .nodes = {made}, .outputs = {bytes(1, "y")}, .initializers = initializers, .opset = opset};
    return model;
}

std::string result(const Model& model) {
    return open_session(model).run({});
}
std::string error(const Model& model) {
    return open_session(model).error({});
}

}  // namespace

TEST_CASE("strings and numbers do not become one tensor") {
    const std::string words = texts_tensor("w", {"a", "b"}), numbers = integers("n", {5, 6});
    const std::string mixed = "it must be of strings";
    CHECK(has(error(constants(node("Concat", {"w", "n"}, {"y"}, {{attribute("axis", 0)}}),
                              {words, numbers})),
              mixed));
    CHECK(has(error(constants(node("Where", {"c", "w", "n"}, {"y"}),
                              {words, numbers,
                               onnx_bytes::tensor("c", {2}, type_bool, std::string("\1\0", 2))})),
              mixed));
    CHECK(has(error(constants(node("ScatterElements", {"w", "i", "n"}, {"y"}),
                              {words, numbers, integers("i", {0, 1})})),
              mixed));
    CHECK(has(error(constants(node("Gather", {"n", "w"}, {"y"}), {words, numbers})), mixed));
    CHECK(has(error(constants(node("ScatterElements", {"w", "i", "w"}, {"y"},
                                   {{attribute("reduction", std::string("add"))}}),
                              {words, integers("i", {0, 1})}, 18)),
              "strings cannot be reduced"));
}

TEST_CASE("loops without nodes end, too") {
    Model model;
    Graph inner, outer;
    inner.inputs = {value("j", {}, type_int64), value("d", {}, type_bool)};
    inner.outputs = {value("d", {}, type_bool)};
    outer.inputs = {value("i", {}, type_int64), value("c", {}, type_bool), value("v", {2})};
    outer.nodes = {node("Loop", {"trips", ""}, {}, {{attribute("body", inner)}})};
    outer.outputs = {value("c", {}, type_bool), value("v", {2})};
    model.nodes = {node("Loop", {"trips", "", "x"}, {"y"}, {{attribute("body", outer)}})};
    model.initializers = {onnx_bytes::tensor("trips", {}, type_int64, raw<std::int64_t>({16000}))};
    model.inputs = {value("x", {2})};
    model.outputs = {value("y", {2})};
    CHECK(has(open_session(model).error({{"x", tensor({2}, {1, 2})}}), "max_nodes"));
}

TEST_CASE("a Scan's state must be a tensor") {
    Model model;
    Graph body;
    body.inputs = {value("v", {2}), value("row", {2})};
    body.outputs = {bytes(1, "none"), value("row", {2})};
    const std::string tensor_type = bytes(1, onnx_bytes::number(1, type_float));
    model.nodes = {node("Scan", {"", "v", "x"}, {"end", "y"},
                        {{attribute("body", body), attribute("num_scan_inputs", 1)}})};
    model.inputs = {value("v", {1, 2}), value("x", {1, 2, 2}),
                    bytes(1, "none") + bytes(2, bytes(9, bytes(1, tensor_type)))};
    model.outputs = {bytes(1, "y")};
    model.opset = 8;
    CHECK(has(open_session(model).error(
                  {{"v", tensor({1, 2}, {1, 2})}, {"x", tensor({1, 2, 2}, {1, 2, 3, 4})}}),
              "it must be a tensor"));
}

TEST_CASE("no work is done for tensors without elements") {
    const std::string none = floats("x", {huge, 0}, {});
    CHECK(result(constants(node("Gather", {"x", "i"}, {"y"}, {{attribute("axis", 1)}}),
                           {none, integers("i", {})})) == "float [1099511627776, 0]:");
    CHECK(result(constants(node("NonMaxSuppression", {"boxes", "scores"}, {"y"}),
                           {floats("boxes", {huge, 0, 4}, {}),
                            floats("scores", {huge, 1, 0}, {})})) == "int64 [0, 3]:");
    CHECK(has(error(constants(node("SplitToSequence", {"x"}, {"y"}), {none})),
              "a sequence of 1099511627776 tensors"));
    CHECK(has(error(constants(node("Unique", {"x"}, {"y"}, {{attribute("axis", 0)}}), {none})),
              "would take more than"));
    // An image without channels, from which nothing is sampled.
    CHECK(result(constants(node("GridSample", {"x", "grid"}, {"y"}),
                           {floats("x", {1, 0, 2, 2}, {}),
                            floats("grid", {1, 1, 1, 2}, {0, 0})})) == "float [1, 0, 1, 1]:");
}

TEST_CASE("sizes that a model computes are bounded before memory is asked for") {
    const std::string small = floats("x", {1, 1, 4}, {1, 2, 3, 4});
    const auto short_integer = [](const std::string& name, std::int16_t number) {
        return onnx_bytes::tensor(name, {}, 5, raw<std::int16_t>({number}));
    };
    CHECK(result(constants(node("Range", {"a", "b", "c"}, {"y"}),
                           {short_integer("a", 3), short_integer("b", 0),
                            short_integer("c", -2)})) == "int16 [2]: 3 1");
    CHECK(
        has(error(constants(
                node("AffineGrid", {"theta", "size"}, {"y"}),
                {floats("theta", {1, 2, 3}, Values(6)), integers("size", {1, 1, huge, huge})}, 20)),
            "a size of 1099511627776"));
    CHECK(has(error(constants(node("OneHot", {"i", "depth", "values"}, {"y"}),
                              {integers("i", {0}), floats("depth", {}, {std::nanf("")}),
                               floats("values", {2}, {0, 1})})),
              "a depth of nan"));
    CHECK(has(error(constants(
                  node("LpPool", {"x"}, {"y"},
                       {{attribute("kernel_shape", Sizes{1}), attribute("dilations", Sizes{2}),
                         attribute("ceil_mode", 1), attribute("pads", Sizes{-4, 1})}}),
                  {small})),
              "pad"));
    CHECK(has(error(constants(
                  node("MaxPool", {"x"}, {"y"},
                       {{attribute("kernel_shape", Sizes{1}), attribute("dilations", Sizes{2}),
                         attribute("pads", Sizes{INT64_MAX, INT64_MAX})}}),
                  {small})),
              "a padding of"));
    CHECK(has(error(constants(node("LinearAttention", {"x", "x", "x", "", "", "beta"}, {"y"},
                                   {{attribute("update_rule", std::string("delta")),
                                     attribute("q_num_heads", 1), attribute("kv_num_heads", 1)}}),
                              {small, floats("beta", {1, 1, 0}, {})}, 28)),
              "a decay or beta of shape [1, 1, 0]"));
    CHECK(has(error(constants(node("Attention", {"q", "q", "q", "mask"}, {"y"}),
                              {floats("q", {1, 1, 2, 2}, Values(4)), floats("mask", {}, {0})}, 23)),
              "the mask is a single number"));
    CHECK(has(error(constants(node("Resize", {"x", "roi", "scales"}, {"y"},
                                   {{attribute("coordinate_transformation_mode",
                                               std::string("tf_crop_and_resize"))}}),
                              {small, floats("roi", {6}, {0, 0, 0, 1, 1, std::nanf("")}),
                               floats("scales", {3}, {1, 1, 2})})),
              "roi reaches from 0 to nan"));
}
