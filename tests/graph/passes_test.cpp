// SPDX-License-Identifier: MIT
// Passes use what operators declare about themselves and not their names, so operators that no pass
// knows are folded and fused.
#include "graph/passes/passes.hpp"

#include "engine/small_integers.hpp"
#include "graph/declared_operator.hpp"
#include "support/catch.hpp"

#include <algorithm>
#include <functional>

using namespace dlprim;

namespace {

struct LinearOptions {
    static constexpr std::string_view type = "TestLinear";
    bool bias = true;
    static constexpr auto fields() {
        return ops::option_table(ops::option<&LinearOptions::bias>("whether it adds a bias"));
    }
};

/// A linear layer of [N, C] without other features.
class Linear : public DeclaredOperator<LinearOptions> {
  public:
    std::vector<TensorSpec> infer(const Attrs&, std::span<const TensorSpec> in) const override {
        return {{Shape{in[0].shape[0], in[1].shape[0]}, in[0].dtype}};
    }
    bool is_linear_layer() const override { return true; }
};

/// max(x, 0), or the sum of two tensors.
class Stage : public Operator {
  public:
    explicit Stage(bool sum) : sum_(sum) {}
    std::string_view type() const override { return sum_ ? "TestSum" : "TestRelu"; }
    const Schema& schema() const override {
        static const Schema schema;
        return schema;
    }
    int max_inputs() const override { return sum_ ? 2 : 1; }
    std::vector<TensorSpec> infer(const Attrs&, std::span<const TensorSpec> in) const override {
        return {in[0]};
    }
    std::optional<EpilogueStage> as_epilogue(const Attrs&) const override {
        EpilogueStage stage;
        stage.kind = sum_ ? EpilogueStage::Kind::add : EpilogueStage::Kind::activation;
        if (!sum_) stage.activation = "relu";
        return stage;
    }

  private:
    bool sum_;
};

void register_once() {
    static const bool done = [] {
        OperatorRegistry& registry = OperatorRegistry::instance();
        registry.add(std::make_unique<Linear>());
        registry.add(std::make_unique<Stage>(true));
        registry.add(std::make_unique<Stage>(false));
        return true;
    }();
    REQUIRE(done);
}

ValueId add_value(Graph& graph, const char* name, const Shape& shape, Role role,
                  DType dtype = DType::f32) {
    Value value;
    value.name = name;
    value.spec = {shape, dtype};
    value.role = role;
    const ValueId id = graph.add_value(std::move(value));
    if (role == Role::input) graph.inputs.push_back(id);
    return id;
}

std::vector<const Node*> nodes_of(const Graph& graph, std::string_view type) {
    std::vector<const Node*> found;
    for (const Node& node : graph.nodes)
        if (!node.removed && node.op->type() == type) found.push_back(&node);
    return found;
}

/// Adds the linear layer to an input of [2, 3], with five channels.
ValueId add_linear(Graph& graph) {
    const ValueId x = add_value(graph, "x", {2, 3}, Role::input);
    const ValueId weight = add_value(graph, "weight", {5, 3}, Role::parameter);
    return graph.add1("TestLinear", "linear", {x, weight}, Attrs{{"bias", false}});
}

}  // namespace

TEST_CASE("a batch norm is folded into whatever says that it is a linear layer") {
    register_once();
    Graph graph;
    std::vector<ValueId> inputs{add_linear(graph)};
    for (const char* name : {"mean", "variance", "scale", "offset"})
        inputs.push_back(add_value(graph, name, {5}, Role::parameter));
    graph.outputs.emplace_back(graph.add1("BatchNorm", "norm", inputs), "y");
    fold_batch_norms(graph);
    CHECK(nodes_of(graph, "BatchNorm").empty());
    const auto linear = nodes_of(graph, "TestLinear");
    REQUIRE(linear.size() == 1);
    CHECK(linear[0]->attrs.boolean("bias"));
    CHECK(linear[0]->inputs.size() == 3);
    CHECK(linear[0]->fused == std::vector<std::string>{"norm"});
    CHECK(graph.outputs[0].first == linear[0]->outputs[0]);
}

TEST_CASE("what says that it is a sum or an activation becomes an epilogue") {
    register_once();
    Graph graph;
    const ValueId residual = add_value(graph, "residual", {2, 5}, Role::input);
    const ValueId sum = graph.add1("TestSum", "sum", {add_linear(graph), residual});
    graph.outputs.emplace_back(graph.add1("TestRelu", "relu", {sum}), "y");
    fuse_epilogues(graph, [](const Graph&, const Node&) { return true; });
    const auto linear = nodes_of(graph, "TestLinear");
    REQUIRE(linear.size() == 1);
    REQUIRE(linear[0]->epilogue.size() == 2);
    CHECK(linear[0]->epilogue[0].kind == EpilogueStage::Kind::add);
    CHECK(linear[0]->inputs[static_cast<std::size_t>(linear[0]->epilogue[0].operand)] == residual);
    CHECK(linear[0]->epilogue[1].activation == "relu");
    CHECK(nodes_of(graph, "TestSum").empty());
    CHECK(nodes_of(graph, "TestRelu").empty());
}

TEST_CASE("views do not keep a sum and an activation from the layer behind them") {
    register_once();
    Graph graph;
    const ValueId residual = add_value(graph, "residual", {10}, Role::input);
    const ValueId flat = graph.reshape("flat", add_linear(graph), Shape{10});
    const ValueId sum = graph.add1("TestSum", "sum", {flat, residual});
    const ValueId image = graph.reshape("image", sum, Shape{1, 5, 2});
    graph.outputs.emplace_back(graph.add1("TestRelu", "relu", {image}), "y");
    fuse_epilogues(graph, [](const Graph&, const Node&) { return true; });
    const auto linear = nodes_of(graph, "TestLinear");
    REQUIRE(linear.size() == 1);
    REQUIRE(linear[0]->epilogue.size() == 2);
    // The residual is seen in the layer's shape, and the output keeps its own.
    const ValueId operand =
        linear[0]->inputs[static_cast<std::size_t>(linear[0]->epilogue[0].operand)];
    CHECK(graph.shape(operand) == Shape{2, 5});
    const auto views = nodes_of(graph, "Reshape");
    CHECK(views.size() == 3);
    CHECK(graph.shape(graph.outputs[0].first) == Shape{1, 5, 2});
    CHECK(nodes_of(graph, "TestSum").empty());
    CHECK(nodes_of(graph, "TestRelu").empty());
}

TEST_CASE("a view that others read keeps its activation") {
    register_once();
    Graph graph;
    const ValueId flat = graph.reshape("flat", add_linear(graph), Shape{10});
    graph.outputs.emplace_back(flat, "x");
    graph.outputs.emplace_back(graph.add1("TestRelu", "relu", {flat}), "y");
    fuse_epilogues(graph, [](const Graph&, const Node&) { return true; });
    CHECK(nodes_of(graph, "TestLinear").at(0)->epilogue.empty());
    CHECK(nodes_of(graph, "TestRelu").size() == 1);
}

TEST_CASE("a view that undoes another is the value before it, unless it is an output") {
    register_once();
    Graph graph;
    const ValueId linear = add_linear(graph);
    const ValueId back = graph.reshape("back", graph.reshape("flat", linear, Shape{10}), {2, 5});
    graph.outputs.emplace_back(graph.add1("TestRelu", "relu", {back}), "y");
    graph.outputs.emplace_back(graph.reshape("again", graph.reshape("line", linear, {10}), {2, 5}),
                               "z");
    join_views(graph);
    CHECK(nodes_of(graph, "TestRelu").at(0)->inputs[0] == linear);
    CHECK(graph.value(graph.outputs[1].first).name == "again:0");
}

namespace {

/// The mean of each row of x [64, 96], and x less that; `others` of a value for each row, beside.
Graph rows_graph(const std::function<ValueId(Graph&, ValueId mean)>& others) {
    register_once();
    Graph graph;
    const ValueId x = add_value(graph, "x", Shape{64, 96}, Role::input);
    const ValueId mean = graph.pointwise1("mean", "y0 = mean[1](x0)", {x});
    const ValueId other = others(graph, mean);
    graph.outputs.emplace_back(graph.pointwise1("rest", "y0 = x0 - x1 - x2", {x, mean, other}),
                               "y");
    return graph;
}

void join(Graph& graph, bool runs = true) {
    join_rows(graph, Traits(), [=](const Graph&, const Node&) { return runs; });
}

}  // namespace

TEST_CASE("nodes that reduce rows and go on in them become one node") {
    Graph graph = rows_graph(
        [](Graph& g, ValueId mean) { return g.pointwise1("square", "y0 = x0 * x0", {mean}); });
    join(graph, false);
    CHECK(nodes_of(graph, "Pointwise").size() == 3);
    CHECK(nodes_of(graph, "PointwiseRows").empty());
    join(graph);
    CHECK(nodes_of(graph, "Pointwise").empty());
    REQUIRE(nodes_of(graph, "PointwiseRows").size() == 1);
    const Node& joined = *nodes_of(graph, "PointwiseRows")[0];
    CHECK(joined.name == "rest");
    CHECK(joined.fused == std::vector<std::string>{"mean", "square"});
    CHECK(joined.outputs.size() == 1);
}

TEST_CASE("a tensor that is one row is joined with what scales its sum") {
    register_once();
    Graph graph;
    const ValueId x = add_value(graph, "x", Shape{96}, Role::input),
                  scale = add_value(graph, "scale", Shape{1}, Role::input);
    const ValueId sum = graph.pointwise1("sum", "y0 = sum[0](x0)", {x});
    const ValueId scaled = graph.pointwise1("scaled", "y0 = x0 * x1", {sum, scale});
    graph.outputs.emplace_back(graph.pointwise1("y", "y0 = x0 * x1", {x, scaled}), "y");
    join(graph);
    REQUIRE(nodes_of(graph, "PointwiseRows").size() == 1);
    CHECK(graph.spec(graph.outputs[0].first).shape == Shape{96});
}

TEST_CASE("values of rows that others read are results of the joined node") {
    Graph graph = rows_graph([](Graph& g, ValueId mean) {
        g.outputs.emplace_back(g.add1("TestRelu", "relu", {mean}), "z");
        return mean;
    });
    join(graph);
    REQUIRE(nodes_of(graph, "PointwiseRows").size() == 1);
    CHECK(nodes_of(graph, "PointwiseRows")[0]->outputs.size() == 2);
    REQUIRE(nodes_of(graph, "TestRelu").size() == 1);
}

TEST_CASE("nodes stay apart where another one needs the first and makes something for the last") {
    Graph graph =
        rows_graph([](Graph& g, ValueId mean) { return g.add1("TestRelu", "relu", {mean}); });
    join(graph);
    CHECK(nodes_of(graph, "PointwiseRows").empty());
    CHECK(nodes_of(graph, "Pointwise").size() == 2);
}

TEST_CASE("products of bytes and of their differences are marked, others are not") {
    Graph graph;
    const auto given = [&](const char* name, const Shape& shape, DType dtype) {
        return add_value(graph, name, shape, Role::input, dtype);
    };
    const ValueId bytes = given("bytes", {1, 2, 4, 4}, DType::u8),
                  zero = given("zero", {1}, DType::u8),
                  words = given("words", {1, 2, 4, 4}, DType::i16);
    const auto program = [&](const char* name, const char* code, ValueId a, ValueId b) {
        return graph.add1("Pointwise", name, {a, b},
                          {{"code", std::string(code)}, {"dtypes", Strings{"float"}}});
    };
    const auto padded = [&](const char* name, ValueId x, double value) {
        return graph.add1("Pad", name, {x}, {{"pads", Ints{1, 1, 1, 1}}, {"value", value}});
    };
    const auto numbers = [&](const char* name, ValueId x) {
        return graph.add1("Cast", name, {x}, {{"dtype", std::string("float")}});
    };
    const ValueId shifted = program("shifted", "y0 = x0 - x1", bytes, zero);
    const auto is_marked = [&](ValueId a, ValueId b) {
        Graph copy = graph;
        copy.add1("MatMul", "product", {a, b});
        mark_small_integers(copy);
        return copy.nodes.back().attrs.has(small_integers_attr);
    };
    CHECK(is_marked(shifted, numbers("numbers", bytes)));
    CHECK(is_marked(graph.reshape("view", shifted, {4, 8}),
                    graph.add1("Transpose", "turned", {graph.reshape("other", shifted, {4, 8})},
                               {{"dims", Ints{1, 0}}})));
    CHECK(is_marked(padded("zeros", shifted, 0), padded("more", shifted, 0)));
    CHECK_FALSE(is_marked(padded("ones", shifted, 0.5), padded("other", shifted, 0)));
    CHECK_FALSE(is_marked(shifted, program("sum", "y0 = x0 + x1", bytes, zero)));
    CHECK_FALSE(is_marked(shifted, numbers("wide", words)));
    CHECK_FALSE(is_marked(shifted, given("floats", {1, 2, 4, 4}, DType::f32)));
}
