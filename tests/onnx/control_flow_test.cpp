// SPDX-License-Identifier: MIT
// If, Loop and Scan: branches that are taken, loops that end by count or by condition, and loops
// that do not end.
#include "onnx/session_support.hpp"

using namespace onnx_test;

namespace {

/// y = x > 0 in all elements ? x + x : x * x
Model choosing_model() {
    Model model;
    Graph yes, no;
    yes.nodes = {node("Add", {"x", "x"}, {"sum"})};
    yes.outputs = {value("sum", {2})};
    no.nodes = {node("Mul", {"x", "x"}, {"square"})};
    no.outputs = {value("square", {2})};
    model.nodes = {node("ReduceMin", {"x"}, {"least"}, {{attribute("keepdims", 0)}}),
                   node("Greater", {"least", "zero"}, {"positive"}),
                   node("If", {"positive"}, {"chosen"},
                        {{attribute("then_branch", yes), attribute("else_branch", no)}}),
                   node("Relu", {"chosen"}, {"y"})};
    model.initializers = {floats("zero", {}, {0})};
    model.inputs = {value("x", {2})};
    model.outputs = {value("y", {2})};
    return model;
}

/// Doubles v, `trips` times or while it is below 100: (v, all values of v).
Model doubling_model(bool by_condition) {
    Model model;
    Graph body;
    body.inputs = {value("i", {}, type_int64), value("go", {}, type_bool), value("v", {})};
    body.nodes = {node("Add", {"v", "v"}, {"next"}),
                  by_condition ? node("Less", {"next", "bound"}, {"go_on"})
                               : node("Identity", {"go"}, {"go_on"}),
                  node("Identity", {"next"}, {"seen"})};
    body.outputs = {value("go_on", {}, type_bool), value("next", {}), value("seen", {})};
    model.nodes = {node("Loop", {by_condition ? "" : "trips", "yes", "x"}, {"last", "y"},
                        {{attribute("body", body)}})};
    model.initializers = {floats("bound", {}, {100}),
                          onnx_bytes::tensor("yes", {}, type_bool, "\1")};
    model.inputs = {value("x", {})};
    if (!by_condition) model.inputs.push_back(value("trips", {}, type_int64));
    model.outputs = {value("y", {-1}), value("last", {})};
    return model;
}

}  // namespace

TEST_CASE("the branch is taken that the device's condition says") {
    Session session = open_session(choosing_model());
    CHECK(session.run({{"x", tensor({2}, {2, 3})}}) == "float [2]: 4 6");
    CHECK(session.run({{"x", tensor({2}, {2, -3})}}) == "float [2]: 4 9");
    CHECK(session.nets() == 3);  // the condition's, and one for each branch
    CHECK(session.run({{"x", tensor({2}, {1, 1})}}) == "float [2]: 2 2");
    CHECK(session.nets() == 3);
}

TEST_CASE("a branch by a constant condition is part of a static network") {
    Model model = choosing_model();
    model.nodes.erase(model.nodes.begin(), model.nodes.begin() + 2);
    model.initializers = {onnx_bytes::tensor("positive", {}, type_bool, "\1")};
    CHECK(run(model, {{"x", {2, -3}}}) == Values{4, 0});
}

TEST_CASE("a loop goes round as often as an input says") {
    Session session = open_session(doubling_model(false));
    CHECK(session.run({{"x", tensor({}, {3})}, {"trips", integer(3)}}) == "float [3]: 6 12 24");
    CHECK(session.output("last") == "float []: 24");
    CHECK(session.nets() == 1);  // all iterations are one net
    CHECK(session.run({{"x", tensor({}, {3})}, {"trips", integer(0)}}) == "float [0]:");
    CHECK(session.output("last") == "float []: 3");
}

TEST_CASE("a loop goes round until the device's condition ends it") {
    Session session = open_session(doubling_model(true));
    CHECK(session.run({{"x", tensor({}, {30})}}) == "float [2]: 60 120");
    CHECK(session.run({{"x", tensor({}, {10})}}) == "float [4]: 20 40 80 160");
    const std::int64_t made = session.nets();
    CHECK(session.run({{"x", tensor({}, {11})}}) == "float [4]: 22 44 88 176");
    CHECK(session.nets() == made);
}

TEST_CASE("a loop that never ends is one sentence") {
    Model model = doubling_model(true);
    model.initializers[0] = floats("bound", {}, {std::numeric_limits<float>::infinity()});
    dlprim::ONNXSessionOptions options;
    options.max_iterations = 5;
    Session session = open_session(model, options);
    CHECK(has(session.error({{"x", tensor({}, {0})}}),
              "[Loop 'last', opset 17] there are more than 5 iterations "
              "(max_iterations)"));
    options = {};
    options.max_nodes = 20;
    session = open_session(doubling_model(false), options);
    CHECK(has(session.error({{"x", tensor({}, {1})}, {"trips", integer(INT64_MAX)}}),
              "stand for more than 20 nodes (max_nodes)"));
}

TEST_CASE("a scan has the sums of what came before, forwards and backwards") {
    Model model;
    Graph body;
    body.inputs = {value("sum", {2}), value("row", {2})};
    body.nodes = {node("Add", {"sum", "row"}, {"next"}), node("Identity", {"next"}, {"out"})};
    body.outputs = {value("next", {2}), value("out", {2})};
    const auto scan = [&](std::vector<std::string> attributes) {
        attributes.push_back(attribute("body", body));
        attributes.push_back(attribute("num_scan_inputs", 1));
        model.nodes = {node("Scan", {"zero", "x"}, {"last", "y"}, {attributes})};
        return open_session(model).run({{"x", tensor({3, 2}, {1, 2, 3, 4, 5, 6})}});
    };
    model.initializers = {floats("zero", {2}, {0, 0})};
    model.inputs = {value("x", {3, 2})};
    model.outputs = {value("y", {-1, -1}), value("last", {2})};
    CHECK(scan({}) == "float [3, 2]: 1 2 4 6 9 12");
    CHECK(scan({attribute("scan_input_directions", Sizes{1})}) == "float [3, 2]: 5 6 8 10 9 12");
    CHECK(scan({attribute("scan_output_directions", Sizes{1})}) == "float [3, 2]: 9 12 4 6 1 2");
    CHECK(scan({attribute("scan_output_axes", Sizes{-1})}) == "float [2, 3]: 1 4 9 2 6 12");
}

TEST_CASE("nodes that own graphs and break rules are named") {
    Model model = choosing_model();
    model.nodes[2] = node("If", {"x"}, {"chosen"},
                          {{attribute("then_branch", Graph{}), attribute("else_branch", Graph{})}});
    CHECK(has(open_session(model).error({{"x", tensor({2}, {1, 2})}}),
              "a condition is float [2]; it must be one bool"));
    model = choosing_model();
    model.nodes[2] = node("If", {"positive"}, {"chosen"},
                          {{attribute("then_branch", Graph{}), attribute("else_branch", Graph{})}});
    CHECK(has(open_session(model).error({{"x", tensor({2}, {1, 2})}}),
              "the branch has 0 outputs, the node has 1"));
    CHECK(has(error_of(choosing_model().str(), dlprim::ErrorKind::unsupported),
              "conditions are known only while the network runs"));
}
