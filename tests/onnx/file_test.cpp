// SPDX-License-Identifier: MIT
// Files that are no models, or models that the library does not read: each is one sentence that
// says what is wrong.
#include "onnx/support.hpp"
#include "support/warnings.hpp"

using namespace onnx_test;
using dlprim::ErrorKind;

namespace {

Model relu() {
    Model model{.nodes = {node("Relu", {"x"}, {"y"}, {{}, "act", ""})},
                .inputs = {value("x", {2, 3})},
                .outputs = {value("y", {2, 3})}};
    return model;
}

/// relu() with other nodes in its graph.
std::string with(const std::vector<std::string>& nodes) {
    Model model = relu();
    model.nodes = nodes;
    return model.str();
}

}  // namespace

TEST_CASE("a file that is no model is refused by what it is") {
    CHECK(has(error_of("", ErrorKind::format), "is empty"));
    CHECK(has(error_of("{\"inputs\": []}", ErrorKind::format),
              "seems to be JSON, and an ONNX model is expected"));
    CHECK(has(error_of(std::string(100, '\xff'), ErrorKind::format), "no protobuf"));
    CHECK(has(error_of(bytes(1, "key") + bytes(2, "value"), ErrorKind::format), "has no graph"));
    CHECK(has(error_of(bytes(7, number(99, 1)), ErrorKind::format), "no outputs"));
    const std::string whole = relu().str();
    CHECK(has(error_of(whole.substr(0, whole.size() / 2), ErrorKind::format), "cut short"));
    CHECK_THROWS_AS(dlprim::ONNXModel("/no/such/file.onnx"), dlprim::Error);
}

TEST_CASE("no beginning of a model and no changed byte does harm") {
    const std::string whole = relu().str();
    const auto try_out = [](const std::string& text) {
        try {
            dlprim::onnx::parse_model(text, "test");
        } catch (const dlprim::Error&) {
        }
    };
    for (std::size_t size = 0; size < whole.size(); ++size) try_out(whole.substr(0, size));
    for (std::size_t at = 0; at < whole.size(); ++at) {
        for (const int bit : {0, 3, 7}) {
            std::string changed = whole;
            changed[at] = static_cast<char>(changed[at] ^ (1 << bit));
            try_out(changed);
        }
    }
}

TEST_CASE("a graph in a graph may not go on for ever") {
    std::string graph = bytes(2, "innermost");
    for (int depth = 0; depth < 100; ++depth)
        graph = bytes(1, bytes(4, "If") +
                             bytes(5, bytes(1, "then_branch") + bytes(6, graph) + number(20, 5)));
    CHECK(has(error_of(bytes(7, graph), ErrorKind::format), "nest deeper"));
}

TEST_CASE("what is not supported is named, with domain, version and node") {
    const std::string unknown =
        error_of(with({node("Fortnight", {"x"}, {"y"}, {{}, "sum", ""})}), ErrorKind::unsupported);
    CHECK(has(unknown, "[Fortnight 'sum', opset 17] this operator is not supported"));
    CHECK(has(error_of(with({node("Rellu", {"x"}, {"y"})}), ErrorKind::unsupported), "'Relu'?"));
    const std::string domain =
        error_of(with({node("Relu", {"x"}, {"y"}, {{}, "act", "custom"})}), ErrorKind::unsupported);
    CHECK(has(domain, "[custom.Relu 'act', opset 1] operators of domain 'custom'"));
    const std::string attribute_name =
        error_of(with({node("Relu", {"x"}, {"y"}, {{attribute("slope", 2)}, "act", ""})}),
                 ErrorKind::unsupported);
    CHECK(has(attribute_name, "[Relu 'act', opset 17] attribute 'slope' is not supported"));

    Model model = relu();
    model.opset = 999;
    CHECK(has(error_of(model.str(), ErrorKind::unsupported), "is of opset 999; the newest"));
    model.opset = 0;
    CHECK(has(error_of(model.str(), ErrorKind::unsupported), "is of opset 0; the oldest"));
    model = relu();
    model.inputs = {value("x", {2, 3}, 8)};
    CHECK(has(error_of(model.str(), ErrorKind::unsupported), "input 'x' is of type string"));
}

TEST_CASE("a graph that does not hang together is refused") {
    CHECK(has(error_of(with({node("Relu", {"z"}, {"y"})}), ErrorKind::format),
              "input 'z' is made by no node, and is no input and no initialiser"));
    CHECK(has(error_of(with({node("Relu", {"x"}, {"z"})}), ErrorKind::format),
              "the graph's output 'y' is made by no node"));
    CHECK(has(error_of(with({node("Relu", {}, {"y"})}), ErrorKind::format), "input 0 is missing"));
    CHECK(has(error_of(with({node("Relu", {"x"}, {"x"})}), ErrorKind::format), "'x' is there"));
    CHECK(has(error_of(with({node("MatMul", {"x", "x"}, {"y"})}), ErrorKind::invalid_argument),
              "[2, 3]"));
}

TEST_CASE("shapes that disagree with what is declared are both named") {
    Model model = relu();
    model.outputs = {value("y", {2, 4})};
    CHECK(has(error_of(model.str(), ErrorKind::format),
              "tensor 'y' is declared as [2, 4] and is [2, 3]"));
    dlprim::NetOptions options;
    options.input_shapes["x"] = {2, 3};  // no other shape than declared
    CHECK(has(error_of(model.str(), ErrorKind::format, options),
              "tensor 'y' is declared as [2, 4] and is [2, 3]"));
    options.input_shapes["x"] = {2, 5};
    CHECK(error_of(model.str(), ErrorKind::format, options) == "no error");
    model.outputs = {value("y", {2, 3}, type_int64)};
    CHECK(has(error_of(model.str(), ErrorKind::format), "is declared as int64 and is float"));
    model.outputs = relu().outputs;
    model.initializers = {tensor("w", {2, 2}, type_float, "123")};
    CHECK(has(error_of(model.str(), ErrorKind::format), "takes 16 bytes, the file has 3"));
    model.initializers = {tensor("w", {1 << 30, 1 << 30, 1 << 30}, type_float, "")};
    CHECK(has(error_of(model.str(), ErrorKind::format), "tensor 'w'"));
    model.initializers = {tensor("w", {-2}, type_float, "")};
    CHECK(has(error_of(model.str(), ErrorKind::format), "tensor 'w'"));
}

TEST_CASE("an input whose sizes are left open asks for them") {
    Model model = relu();
    model.inputs = {bytes(1, "x") +
                    bytes(2, bytes(1, number(1, 1) + bytes(2, bytes(1, bytes(2, "N")) +
                                                                  bytes(1, bytes(2, "C")))))};
    model.outputs = {value("y", {-1, -1})};
    CHECK(has(error_of(model.str(), ErrorKind::invalid_argument), "declared as [N, C]"));
    dlprim::NetOptions options;
    options.input_shapes["x"] = dlprim::Shape{2, 3, 4};
    CHECK(has(error_of(model.str(), ErrorKind::invalid_argument, options), "got [2, 3, 4]"));
    options.input_shapes["x"] = dlprim::Shape{2, 3};
    CHECK(open(model, options).input_shape("x") == dlprim::Shape{2, 3});
}

TEST_CASE("inputs that give two sizes one name are a warning") {
    Model model{.nodes = {node("MatMul", {"x", "z"}, {"y"})},
                .inputs = {value("x", {-1, 2}), value("z", {2, -1})},
                .outputs = {value("y", {-1, -1})}};
    dlprim::NetOptions options;
    options.input_shapes = {{"x", {3, 2}}, {"z", {2, 4}}};
    dlprim::testing::Warnings warnings;
    CHECK(dlprim::describe(open(model, options)).outputs.at(0).shape == dlprim::Shape{3, 4});
    REQUIRE(warnings.lines.size() == 1);
    CHECK(has(warnings.lines[0],
              "input 'z' has N = 4, input 'x' has N = 3: the model gives both sizes one name"));
    options.input_shapes["z"] = {2, 3};
    open(model, options);
    CHECK(warnings.lines.size() == 1);
}
