// SPDX-License-Identifier: MIT
// Sequences and optionals, as inputs, outputs and between nodes.
#include "onnx/session_support.hpp"

using namespace onnx_test;

namespace {

/// ValueInfoProto of a sequence of floats, or of an optional one.
std::string sequence_info(const std::string& name, bool optional = false) {
    const std::string tensor_type = bytes(1, onnx_bytes::number(1, type_float));
    const std::string sequence_type = bytes(4, bytes(1, tensor_type));
    return bytes(1, name) + bytes(2, optional ? bytes(9, bytes(1, sequence_type)) : sequence_type);
}

const ONNXValue two_tensors(ONNXValue::Sequence{tensor({1}, {1}), tensor({2}, {2, 3})});

}  // namespace

TEST_CASE("sequences go in and come out, and positions may be inputs") {
    Session session = open_session(
        {.nodes = {node("SequenceInsert", {"s", "x", "at"}, {"y"}),
                   node("SequenceLength", {"y"}, {"length"}),
                   node("SequenceAt", {"y", "last"}, {"end"}),
                   node("SequenceErase", {"y", "at"}, {"same"})},
         .inputs = {sequence_info("s"), value("x", {1}), value("at", {}, type_int64)},
         .outputs = {sequence_info("y"), value("length", {}, type_int64), value("end", {2}),
                     sequence_info("same")},
         .initializers = {onnx_bytes::tensor("last", {}, type_int64, raw<std::int64_t>({-1}))}});
    const auto x = tensor({1}, {9});
    CHECK(session.run({{"s", two_tensors}, {"x", x}, {"at", integer(1)}}) ==
          "(float [1]: 1, float [1]: 9, float [2]: 2 3)");
    CHECK(session.output("length") == "int64 []: 3");
    CHECK(session.output("end") == "float [2]: 2 3");
    CHECK(session.output("same") == "(float [1]: 1, float [2]: 2 3)");
    CHECK(session.run({{"s", two_tensors}, {"x", x}, {"at", integer(-2)}}) ==
          "(float [1]: 9, float [1]: 1, float [2]: 2 3)");
    CHECK(has(session.error({{"s", two_tensors}, {"x", x}, {"at", integer(3)}}),
              "position 3 is outside of a sequence of 2"));
    CHECK(has(session.error({{"s", x}, {"x", x}, {"at", integer(0)}}),
              "input 's' is declared as a sequence of float, got float [1]"));
}

TEST_CASE("a tensor is split into a sequence and joined again, in a static network too") {
    Model model{.nodes = {node("SplitToSequence", {"x"}, {"parts"}, {{attribute("keepdims", 0)}}),
                          node("ConcatFromSequence", {"parts"}, {"y"},
                               {{attribute("axis", 1), attribute("new_axis", 1)}})},
                .inputs = {value("x", {2, 3})},
                .outputs = {value("y", {3, 2})}};
    CHECK(run(model, {{"x", {1, 2, 3, 4, 5, 6}}}) == Values{1, 4, 2, 5, 3, 6});
}

TEST_CASE("a loop collects a sequence") {
    Model model;
    Graph body;
    body.inputs = {value("i", {}, type_int64), value("go", {}, type_bool), sequence_info("list")};
    body.nodes = {node("Cast", {"i"}, {"number"}, {{attribute("to", 1)}}),
                  node("Mul", {"number", "x"}, {"product"}),
                  node("SequenceInsert", {"list", "product"}, {"longer"})};
    body.outputs = {value("go", {}, type_bool), sequence_info("longer")};
    model.nodes = {node("SequenceEmpty", {}, {"empty"}),
                   node("Loop", {"trips", "", "empty"}, {"y"}, {{attribute("body", body)}})};
    model.inputs = {value("x", {2}), value("trips", {}, type_int64)};
    model.outputs = {sequence_info("y")};
    Session session = open_session(model);
    CHECK(session.run({{"x", tensor({2}, {1, 2})}, {"trips", integer(3)}}) ==
          "(float [2]: 0 0, float [2]: 1 2, float [2]: 2 4)");
    CHECK(session.run({{"x", tensor({2}, {1, 2})}, {"trips", integer(0)}}) == "()");
}

TEST_CASE("an optional may be left out") {
    Model model{
        .nodes = {node("OptionalHasElement", {"s"}, {"y"}), node("Identity", {"s"}, {"same"})},
        .inputs = {sequence_info("s", true)},
        .outputs = {value("y", {}, type_bool), sequence_info("same", true)},
        .opset = 18};
    Session session = open_session(model);
    CHECK(session.run({{"s", two_tensors}}) == "bool []: 1");
    CHECK(session.output("same") == "(float [1]: 1, float [2]: 2 3)");
    CHECK(session.run({}) == "bool []: 0");
    CHECK(session.output("same") == "none");
    CHECK(session.run({{"s", ONNXValue()}}) == "bool []: 0");
    model.nodes[0] = node("OptionalGetElement", {"s"}, {"y"});
    model.outputs[0] = sequence_info("y");
    session = open_session(model);
    CHECK(session.run({{"s", two_tensors}}) == "(float [1]: 1, float [2]: 2 3)");
    CHECK(has(session.error({}), "the optional has no element"));
}
