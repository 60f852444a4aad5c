// SPDX-License-Identifier: MIT
// Models whose numbers are chosen to do harm: sizes that overflow, divisions by zero, work and
// memory without end. Each is an error in one sentence.
#include "onnx/support.hpp"

#include <cmath>
#include <limits>

using namespace onnx_test;
using dlprim::ErrorKind;

namespace {

/// x of this shape, and one node that makes y of it.
std::string one_node(const std::string& made, const Sizes& shape,
                     const std::vector<std::string>& initializers = {}) {
    Model model{.nodes = {made},
                .inputs = {value("x", shape)},
                .outputs = {bytes(1, "y")},
                .initializers = initializers};
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

TEST_CASE("convolutions of three dimensions refuse sizes that overflow") {
    const Sizes image{1, 1, 4, 4, 4};
    const auto convolution = [&](const std::string& type, const Sizes& x, const Sizes& weight,
                                 const std::vector<std::string>& attributes, ErrorKind kind) {
        std::int64_t count = 1;
        for (const std::int64_t size : weight) count *= size;
        return error_of(one_node(node(type, {"x", "w"}, {"y"}, {attributes}), x,
                                 {floats("w", weight, Values(static_cast<std::size_t>(count)))}),
                        kind);
    };
    const auto format = ErrorKind::format, invalid = ErrorKind::invalid_argument;
    for (const char* const type : {"Conv", "ConvTranspose"}) {
        CAPTURE(type);
        CHECK(has(convolution(type, image, {1, 1, 2, 2, 2},
                              {attribute("pads", Sizes{INT64_MAX, 0, 0, INT64_MAX, 0, 0})}, format),
                  "a padding of 9223372036854775807"));
        for (const char* const name : {"strides", "dilations"})
            CHECK(has(convolution(type, image, {1, 1, 2, 2, 2},
                                  {attribute(name, Sizes{huge, 1, 1})}, format),
                      "a size of 1099511627776 in kernel_shape, strides or dilations"));
        CHECK(
            has(convolution(type, {1, 1, huge, 1, 1}, {1, 1, 2, 1, 1}, {}, ErrorKind::unsupported),
                "images of shape [1, 1, 1099511627776, 1, 1] are too large"));
    }
    CHECK(has(convolution("ConvTranspose", image, {1, 1, 2, 2, 2},
                          {attribute("output_padding", Sizes{INT64_MAX, 0, 0})}, format),
              "an output_padding of 9223372036854775807"));
    CHECK(has(convolution("ConvTranspose", image, {1, 1, 2, 2, 2},
                          {attribute("output_shape", Sizes{INT64_MAX, 1, 1})}, format),
              "an output of size 9223372036854775807"));
    // Each of these sizes is allowed, but not all of them together.
    const std::int64_t most = (std::int64_t{1} << 24) - 1, side = std::int64_t{1} << 19;
    CHECK(has(convolution("ConvTranspose", {1, 1, side, side, side}, {1, 1, 1, 1, 1},
                          {attribute("strides", Sizes{most, most, most})}, invalid),
              "more than 2^60 elements"));
    CHECK(has(convolution("Conv", {1, 1, side, side, side}, {1, 1, 2, 1, 1},
                          {attribute("pads", Sizes{most, most, most, most, most, most})}, invalid),
              "more than 2^60 elements"));
    // 2^32 groups of 2^32 channels are 0 channels in 64 bits.
    const std::int64_t square = std::int64_t{1} << 32;
    CHECK(has(convolution("Conv", {1, square, 1, 1, 1}, {0, square, 1, 1, 1},
                          {attribute("group", square)}, format),
              "do not fit a weight of shape [0, 4294967296, 1, 1, 1] and 4294967296 groups"));
}

TEST_CASE("MaxUnpool refuses sizes that overflow") {
    const auto unpool = [](const Sizes& shape, const Sizes& kernel, const Sizes& strides,
                           const Sizes& pads, const Sizes& output = {},
                           ErrorKind kind = ErrorKind::format) {
        Model model;
        std::vector<std::string> inputs{"x", "i"};
        if (!output.empty()) {
            inputs.emplace_back("shape");
            model.initializers = {integers("shape", output)};
        }
        model.nodes = {node("MaxUnpool", inputs, {"y"},
                            {{attribute("kernel_shape", kernel), attribute("strides", strides),
                              attribute("pads", pads)}})};
        model.inputs = {value("x", shape), value("i", shape, type_int64)};
        model.outputs = {bytes(1, "y")};
        return error_of(model.str(), kind);
    };
    const auto invalid = ErrorKind::invalid_argument;
    const Sizes image{1, 1, 2, 2}, two{2, 2}, none{0, 0, 0, 0};
    CHECK(has(unpool(image, {INT64_MAX, 2}, two, none), "a kernel of 9223372036854775807"));
    CHECK(has(unpool(image, two, {huge, 2}, none), "a stride of 1099511627776"));
    CHECK(has(unpool(image, two, two, {INT64_MAX, 0, INT64_MAX, 0}),
              "pads of 9223372036854775807 and 9223372036854775807"));
    CHECK(has(unpool({1, 1, huge, 1}, two, two, none), "maxima of shape [1, 1, 1099511627776, 1]"));
    const std::int64_t most = (std::int64_t{1} << 31) - 1;
    CHECK(has(unpool({1, 1, 1024, 1024}, {most, most}, {most, most}, none, {}, invalid),
              "more than 2^60 elements"));
    CHECK(has(unpool(image, two, two, none, {1, 1, INT64_MIN, 4}),
              "output_shape has -9223372036854775808 elements in dimension 2, the maxima need 4"));
    CHECK(has(unpool(image, two, two, none, {INT64_MIN, 1, 4, 4}),
              "output_shape has -9223372036854775808 elements in dimension 0, the maxima need 1"));
    CHECK(has(unpool(image, two, two, none, {1, 1, INT64_MAX, 4}, invalid),
              "more than 2^60 elements"));
}

TEST_CASE("recurrent operators refuse sizes that overflow") {
    for (const std::int64_t gates : {1, 3, 4}) {
        const std::string type = gates == 1 ? "RNN" : gates == 3 ? "GRU" : "LSTM";
        CAPTURE(type);
        const auto recurrent = [&](const Sizes& x, const Sizes& w, const Sizes& r,
                                   ErrorKind kind = ErrorKind::format) {
            Model model{.nodes = {node(type, {"x", "w", "r"}, {"y"}, {{}, "n"})},
                        .inputs = {value("x", x), value("w", w), value("r", r)},
                        .outputs = {bytes(1, "y")}};
            return error_of(model.str(), kind);
        };
        CHECK(has(recurrent({2, 1, 3}, {1, gates, 3}, {1, 1, std::int64_t{1} << 59}),
                  "which has no elements or too many"));
        CHECK(has(recurrent({2, 1, 3}, {1, gates, 3}, {1, gates * huge / 4096, huge / 4096}),
                  "input 1 has shape"));
        // 2^40 sequences whose states have 2^22 elements each.
        const std::int64_t hidden = std::int64_t{1} << 22;
        CHECK(has(recurrent({2, huge, 1}, {1, gates * hidden, 1}, {1, gates * hidden, hidden},
                            ErrorKind::invalid_argument),
                  "more than 2^60 elements"));
        CHECK(has(recurrent({huge, 1, 1}, {1, gates, 1}, {1, gates, 1}, ErrorKind::unsupported),
                  "steps (max_iterations)"));
    }
}

TEST_CASE("RoiAlign refuses sizes that overflow") {
    const auto align = [](std::int64_t boxes, const std::vector<std::string>& attributes,
                          ErrorKind kind) {
        Model model{.nodes = {node("RoiAlign", {"x", "boxes", "batch"}, {"y"}, {attributes})},
                    .inputs = {value("x", {1, 1, 4, 4}), value("boxes", {boxes, 4}),
                               value("batch", {boxes}, type_int64)},
                    .outputs = {bytes(1, "y")}};
        return error_of(model.str(), kind);
    };
    const std::string once = attribute("sampling_ratio", 1);
    for (const char* const name : {"output_height", "output_width", "sampling_ratio"})
        for (const std::int64_t size : {INT64_MAX, INT64_MIN, huge})
            CHECK(has(align(1, {attribute(name, size)}, ErrorKind::format), "an output of"));
    const std::int64_t most = 1 << 20;
    CHECK(has(align(std::int64_t{1} << 45, {once, attribute("output_height", most)},
                    ErrorKind::invalid_argument),
              "more than 2^60 elements"));
    CHECK(has(align(1,
                    {attribute("sampling_ratio", most), attribute("output_height", most),
                     attribute("output_width", most)},
                    ErrorKind::invalid_argument),
              "more than 2^60 elements"));
    Model model{.nodes = {node("RoiAlign", {"x", "boxes", "batch"}, {"y"})},
                .inputs = {value("x", {1, 1, 4, 4})},
                .outputs = {bytes(1, "y")}};
    for (const float end : {1e30f, std::numeric_limits<float>::infinity(), std::nanf("")}) {
        model.initializers = {floats("boxes", {1, 4}, {0, 0, end, 1}), integers("batch", {0})};
        CHECK(has(error_of(model.str(), ErrorKind::unsupported), "a box of size"));
    }
}

TEST_CASE("computed indices into a dimension without elements are an error") {
    Model model{.nodes = {node("ArgMax", {"x"}, {"i"}, {{attribute("axis", 0)}}),
                          node("Gather", {"table", "i"}, {"y"})},
                .inputs = {value("x", {4})},
                .outputs = {bytes(1, "y")},
                .initializers = {floats("table", {0, 3}, {})}};
    CHECK(has(error_of(model.str(), ErrorKind::format), "which has no elements"));
}

TEST_CASE("a value that is fixed has the declared shape and as many bytes") {
    Model model{.nodes = {node("Reshape", {"x", "s"}, {"y"})},
                .inputs = {value("x", {4}), value("s", {2}, type_int64)},
                .outputs = {bytes(1, "y")}};
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
    Model model{.nodes = {node("Relu", {"x"}, {"y"})},
                .inputs = {value("x", {2}), value("x", {2})},
                .outputs = {value("y", {2})}};
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
