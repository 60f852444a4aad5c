// SPDX-License-Identifier: MIT
// The gradient of a tensor that is cut into slices: slices that lie beside each other are joined,
// in place of a sum of padded ones. What rotates a tensor has a gradient that rotates it back.
#include "graph/operator.hpp"
#include "graph/passes/passes.hpp"
#include "support/catch.hpp"

#include <utility>

using namespace dlprim;

namespace {

ValueId add_input(Graph& graph, const Shape& shape) {
    Value value;
    value.name = "x";
    value.spec = {shape, DType::f32};
    value.role = Role::input;
    const ValueId id = graph.add_value(std::move(value));
    graph.inputs.push_back(id);
    return id;
}

/// A tensor of 9 columns, slices [begin, end) of which are the graph's outputs, and its gradient.
struct Sliced {
    Graph graph;
    ValueId x;

    explicit Sliced(const std::vector<std::pair<int, int>>& slices) : x(add_input(graph, {4, 9})) {
        for (const auto& [begin, end] : slices) {
            const std::string name = "from_" + std::to_string(begin);
            const Attrs attrs{{"dim", std::int64_t{1}},
                              {"begin", std::int64_t{begin}},
                              {"end", std::int64_t{end}}};
            graph.outputs.emplace_back(graph.add1("Slice", name, {x}, attrs), name);
        }
        DifferentiateOptions options;
        options.input_gradients = options.seeds_are_inputs = true;
        differentiate(graph, options);
    }
    int count(std::string_view type) const {
        int found = 0;
        for (const Node& node : graph.nodes) found += !node.removed && node.op->type() == type;
        return found;
    }
    /// The seed "@grad/..." that belongs to a slice.
    ValueId seed(const std::string& name) const {
        for (std::size_t i = 0; i < graph.values.size(); ++i)
            if (graph.values[i].name == "@grad/" + name) return static_cast<ValueId>(i);
        FAIL("no seed of " << name);
        return no_value;
    }
};

}  // namespace

TEST_CASE("slices that cover a tensor give its gradient by one Concat, in their order") {
    const Sliced net({{6, 9}, {0, 3}, {3, 6}});
    CHECK(net.count("Concat") == 1);
    CHECK(net.count("Pad") == 0);
    CHECK(net.count("Pointwise") == 0);
    const ValueId dx = net.graph.gradients.at(net.x);
    for (const Node& node : net.graph.nodes)
        if (node.op->type() == "Concat") {
            CHECK(node.outputs[0] == dx);
            CHECK(node.inputs ==
                  std::vector<ValueId>{net.seed("from_0"), net.seed("from_3"), net.seed("from_6")});
        }
}

TEST_CASE("slices with a gap between them are padded and added") {
    const Sliced net({{0, 3}, {6, 9}});
    CHECK(net.count("Concat") == 0);
    CHECK(net.count("Pad") == 2);
    CHECK(net.count("Pointwise") == 1);
}

TEST_CASE("slices beside each other that leave something out are joined, then padded") {
    const Sliced net({{2, 5}, {5, 8}});
    CHECK(net.count("Concat") == 1);
    CHECK(net.count("Pad") == 1);
    CHECK(net.count("Pointwise") == 0);
}

TEST_CASE("slices that overlap are added") {
    const Sliced net({{0, 6}, {3, 9}});
    CHECK(net.count("Concat") == 0);
    CHECK(net.count("Pad") == 2);
    CHECK(net.count("Pointwise") == 1);
}

TEST_CASE("a slice of everything hands its gradient through") {
    const Sliced net({{0, 9}});
    CHECK(net.graph.gradients.at(net.x) == net.seed("from_0"));
}

TEST_CASE("the gradient of a rotation is the rotation back, and that of other padding is not") {
    for (const bool rotates : {true, false}) {
        Graph graph;
        const ValueId x = add_input(graph, {4, 9});
        const Attrs attrs{{"pads", rotates ? Ints{-2, 2} : Ints{1, 2}},
                          {"mode", std::string("circular")}};
        graph.outputs.emplace_back(graph.add1("Pad", "roll", {x}, attrs), "y");
        DifferentiateOptions options;
        options.input_gradients = options.seeds_are_inputs = true;
        differentiate(graph, options);
        bool back = false, gathered = false;
        for (const Node& node : graph.nodes) {
            back = back || (node.op->type() == "Pad" && node.attrs.ints("pads") == Ints{2, -2});
            gathered = gathered || node.op->type() == "PadBackward";
        }
        CHECK(back == rotates);
        CHECK(gathered == !rotates);
    }
}
