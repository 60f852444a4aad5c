// SPDX-License-Identifier: MIT
// Models whose numbers are chosen to do harm: sizes that overflow, divisions by zero, work and
// memory without end. Each is an error in one sentence.
#include "onnx/support.hpp"

using namespace onnx_test;
using dlprim::ErrorKind;

namespace {

constexpr std::int64_t huge = std::int64_t{1} << 40;

/// x of this shape, and one node that makes y of it.
std::string one_node(const std::string& made, const Sizes& shape,
                     const std::vector<std::string>& initializers = {}) {
    Model model;
    model.nodes = {made};
    model.inputs = {value("x", shape)};
    model.outputs = {bytes(1, "y")};
    model.initializers = initializers;
    return model.str();
}

/// A function of this name, from a to b, with these nodes.
std::string function(const std::string& name, const std::vector<std::string>& nodes,
                     std::int64_t opset = 17) {
    return bytes(1, name) + bytes(4, "a") + bytes(5, "b") + texts(7, nodes) +
           bytes(9, bytes(1, "") + number(2, opset)) + bytes(9, bytes(1, "custom") + number(2, 1)) +
           bytes(10, "custom");
}

}  // namespace

TEST_CASE("sizes that overflow, and divisions by zero, are errors") {
    if (is_absent()) return;
    CHECK(has(error_of(one_node(node("Reshape", {"x", "s"}, {"y"}), {4},
                                {integers("s", {huge, huge, -1})}),
                       ErrorKind::format),
              "sizes overflow"));
    const std::int64_t square = std::int64_t{1} << 32;  // its square is 0 in 64 bits
    CHECK(has(
        error_of(one_node(node("DepthToSpace", {"x"}, {"y"}, {{attribute("blocksize", square)}}),
                          {1, 4, 2, 2}),
                 ErrorKind::format),
        "do not fit"));
    CHECK(has(error_of(one_node(node("InstanceNormalization", {"x", "s", "s"}, {"y"}), {1, 4, 2, 2},
                                {floats("s", {0}, {})}),
                       ErrorKind::format),
              "0 elements for 4 channels"));
    CHECK(has(error_of(one_node(node("Split", {"x", "s"}, {"y", "z"}), {4},
                                {integers("s", {1, INT64_MAX})}),
                       ErrorKind::format),
              "larger than 4"));
    CHECK(has(error_of(one_node(node("Conv", {"x", "w"}, {"y"},
                                     {{attribute("group", (std::int64_t{1} << 62) + 1)}}),
                                {1, 4, 2, 2}, {floats("w", {4, 4, 1, 1}, Values(16))}),
                       ErrorKind::format),
              "groups of 4 channels"));
    CHECK(has(
        error_of(one_node(node("Dropout", {"x", "ratio"}, {"y"}), {4}, {floats("ratio", {0}, {})}),
                 ErrorKind::format),
        "no single number"));
}

TEST_CASE("computed indices into a dimension without elements are an error") {
    if (is_absent()) return;
    Model model;
    model.nodes = {node("ArgMax", {"x"}, {"i"}, {{attribute("axis", 0)}}),
                   node("Gather", {"table", "i"}, {"y"})};
    model.inputs = {value("x", {4})};
    model.outputs = {bytes(1, "y")};
    model.initializers = {floats("table", {0, 3}, {})};
    CHECK(has(error_of(model.str(), ErrorKind::format), "which has no elements"));
}

TEST_CASE("a value that is fixed has the declared shape and as many bytes") {
    if (is_absent()) return;
    Model model;
    model.nodes = {node("Reshape", {"x", "s"}, {"y"})};
    model.inputs = {value("x", {4}), value("s", {2}, type_int64)};
    model.outputs = {bytes(1, "y")};
    dlprim::ONNXModel open_model;
    open_model.parse(model.str(), "fixed.onnx");
    const auto fix = [&](const dlprim::Shape& shape, std::size_t bytes) {
        dlprim::HostTensor sizes;
        sizes.shape = shape;
        sizes.dtype = dlprim::DType::i64;
        sizes.data.resize(bytes);
        return open_model.fixed({{"s", sizes}});
    };
    CHECK_NOTHROW(fix({2}, 16));
    CHECK_THROWS_AS(fix({2}, 8), dlprim::Error);
    CHECK_THROWS_AS(fix({3}, 24), dlprim::Error);
}

TEST_CASE("small files ask for little work and memory") {
    if (is_absent()) return;
    const Sizes zeros(60000, 0);
    CHECK(has(error_of(one_node(node("Gather", {"w", "i"}, {"y"}), {4},
                                {floats("w", {1, 5000}, Values(5000)), integers("i", zeros)}),
                       ErrorKind::unsupported),
              "would take more than"));
    CHECK(has(error_of(one_node(node("Slice", {"x", "zero", "end", "zero", "step"}, {"y"}), {huge},
                                {integers("zero", {0}), integers("end", {INT64_MAX}),
                                 integers("step", {2})}),
                       ErrorKind::unsupported),
              "would take more than"));
    // 100 nodes, each of which is 100 nodes, and so on.
    Model model;
    const int depth = 12;
    for (int i = 0; i < depth; ++i) {
        const std::string inner = i + 1 < depth ? "f" + std::to_string(i + 1) : "Identity";
        std::vector<std::string> nodes;
        nodes.reserve(100);
        for (int j = 0; j < 100; ++j)
            nodes.push_back(node(inner, {"a"}, {j == 0 ? "b" : "b" + std::to_string(j)},
                                 {{}, "", i + 1 < depth ? "custom" : ""}));
        model.functions.push_back(function("f" + std::to_string(i), nodes));
    }
    model.nodes = {node("f0", {"x"}, {"y"}, {{}, "", "custom"})};
    model.inputs = {value("x", {2})};
    model.outputs = {value("y", {2})};
    CHECK(has(error_of(model.str(), ErrorKind::unsupported), "more than 262144 nodes"));
}

TEST_CASE("names that stand twice, and functions of another version, are errors") {
    if (is_absent()) return;
    Model model;
    model.nodes = {node("Relu", {"x"}, {"y"})};
    model.inputs = {value("x", {2}), value("x", {2})};
    model.outputs = {value("y", {2})};
    CHECK(has(error_of(model.str(), ErrorKind::format), "the name 'x' of another"));
    model.inputs.pop_back();
    model.outputs.push_back(value("y", {2}));
    CHECK(has(error_of(model.str(), ErrorKind::unsupported), "another output"));
    model.outputs.pop_back();
    model.nodes = {node("f", {"x"}, {"y"}, {{}, "", "custom"})};
    model.functions = {function("f", {node("Relu", {"a"}, {"b"})}, 999)};
    CHECK(has(error_of(model.str(), ErrorKind::unsupported), "the function is of opset 999"));
    model.functions = {function("f", {node("Relu", {"a"}, {"b"})}),
                       function("f", {node("Tanh", {"a"}, {"b"})})};
    CHECK(has(error_of(model.str(), ErrorKind::unsupported), "several functions of this name"));
}
