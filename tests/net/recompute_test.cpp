// SPDX-License-Identifier: MIT
// Values that are recomputed where they are read: which nodes remain and what they read.
// Comparisons and gradients are the same as with stored values.
#include "formats/json_net.hpp"
#include "graph/description.hpp"
#include "graph/operator.hpp"
#include "graph/passes/passes.hpp"
#include "net/support.hpp"

#include <algorithm>
#include <cmath>

using namespace dlprim;
using namespace dlprim::testing;

namespace {

/// A convolution, BatchNorm and activation, twice. `outputs` are named besides the loss.
std::string recompute_json(const std::string& activation, const std::string& outputs = {}) {
    const auto block = [&](const std::string& n, const std::string& from) {
        return R"({"name": "conv)" + n + R"(", "type": "Convolution2D", "inputs": [")" + from +
               R"("], "outputs": ["conv)" + n + R"("],
                "options": {"channels_out": 20, "kernel": 3, "pad": 1, "bias": false}},
               {"name": "bn)" +
               n + R"(", "type": "BatchNorm", "inputs": ["conv)" + n + R"("], "outputs": ["bn)" +
               n + R"("]},
               {"name": "act)" +
               n + R"(", "type": "Activation", "inputs": ["bn)" + n + R"("], "outputs": ["act)" +
               n + R"("], "options": {"activation": ")" + activation + R"("}},)";
    };
    return R"({"inputs": [{"name": "data", "shape": [4, 3, 14, 14]},
                          {"name": "label", "shape": [4], "dtype": "int"}],
      "outputs": [)" +
           outputs + R"("loss"], "operators": [)" + block("1", "data") + block("2", "act1") + R"(
        {"name": "pool", "type": "Pooling2D", "inputs": ["act2"], "outputs": ["pool"],
         "options": {"kernel": 2, "stride": 2}},
        {"name": "scores", "type": "InnerProduct", "inputs": ["pool"], "outputs": ["scores"],
         "options": {"outputs": 5}},
        {"name": "loss", "type": "SoftmaxWithLoss", "inputs": ["scores", "label"],
         "outputs": ["loss"]}]})";
}

constexpr std::int64_t full = std::int64_t{4} * 20 * 14 * 14;

/// The traits of a GPU.
Traits gpu() {
    Traits traits;
    traits.gflops = 60000;
    traits.gbytes_per_s = 3000;
    traits.launch_us = 0;
    return traits;
}

void recompute(Graph& graph, const Traits& device) {
    while (recompute_pointwise(graph, device)) merge_pointwise(graph);
}

/// A training graph as it is before engines are chosen.
Graph training_graph(const std::string& json) {
    Graph graph = build_graph(parse_net_json(json, "test"), {}, 0, true);
    expand_composites(graph);
    differentiate(graph);
    lower(graph);
    merge_pointwise(graph);
    return graph;
}

const Node* find(const Graph& graph, const std::string& name) {
    for (const Node& node : graph.nodes)
        if (node.name == name) return &node;
    return nullptr;
}

/// The number of tensors of `elements` elements that the node reads and writes.
int passes(const Graph& graph, const Node& node, std::int64_t elements = full) {
    int count = 0;
    for (const auto* values : {&node.inputs, &node.outputs})
        for (const ValueId id : *values) count += graph.shape(id).numel() == elements;
    return count;
}

/// The same for all Pointwise nodes of a part.
int passes(const Graph& graph, Part part) {
    int count = 0;
    for (const Node& node : graph.nodes)
        if (node.part == part && node.op->type() == "Pointwise") count += passes(graph, node);
    return count;
}

bool reads(const Graph& graph, const Node& node, const std::string& value) {
    return std::any_of(node.inputs.begin(), node.inputs.end(),
                       [&](ValueId id) { return graph.value(id).name == value; });
}

/// The Pointwise nodes that the pass leaves in a graph that is built by hand. x and y are made by
/// copies that cannot merge. z and what `build` returns are read from outside.
struct Handmade {
    Graph graph;
    ValueId x, y;

    Handmade() {
        x = made("x");
        y = made("y");
    }
    /// A value of a separate node that is not a Pointwise.
    ValueId made(const std::string& name, DType dtype = DType::f32) {
        Value value;
        value.name = name + "/input";
        value.spec = {Shape{64, 65}, dtype};
        value.role = Role::input;
        const ValueId input = graph.add_value(std::move(value));
        graph.inputs.push_back(input);
        return graph.add1("Transpose", name, {input});
    }
    void output(ValueId id, const std::string& name) { graph.outputs.emplace_back(id, name); }
    bool stays(const std::string& name) {
        merge_pointwise(graph);
        recompute(graph, gpu());
        return find(graph, name) != nullptr;
    }
};

}  // namespace

TEST_CASE("the gradient of BatchNorm and ReLU passes over tensors five times", "[recompute]") {
    const std::string activation = GENERATE("relu", "relu6", "leaky_relu");
    Graph graph = training_graph(recompute_json(activation));
    CHECK(passes(graph, *find(graph, "act1/backward")) == 3);
    CHECK(passes(graph, *find(graph, "bn1/backward/sums")) == 2);
    CHECK(passes(graph, *find(graph, "bn1/backward")) == 3);
    const int before = passes(graph, Part::backward), forward = passes(graph, Part::forward);
    recompute(graph, gpu());
    CHECK(find(graph, "act1/backward") == nullptr);
    for (const std::string n : {"1", "2"}) {
        const Node& sums = *find(graph, "bn" + n + "/backward/sums");
        const Node& dx = *find(graph, "bn" + n + "/backward");
        CHECK(passes(graph, sums) == 2);
        CHECK(passes(graph, dx) == 3);
        for (const Node* node : {&sums, &dx}) {
            CHECK(reads(graph, *node, "conv" + n));
            CHECK_FALSE(reads(graph, *node, "act" + n));
            CHECK(std::find(node->fused.begin(), node->fused.end(), "act" + n + "/backward") !=
                  node->fused.end());
        }
    }
    CHECK(passes(graph, Part::backward) == before - 6);
    CHECK(passes(graph, Part::forward) == forward);
}

TEST_CASE("a tensor between a BatchNorm and an activation is not kept for its gradient",
          "[recompute]") {
    // The gradient of hardswish needs its input x, which is there already, so it does not need bn1.
    Graph graph = training_graph(recompute_json("hardswish"));
    const int before = passes(graph, Part::forward);
    CHECK(find(graph, "bn1") != nullptr);
    CHECK(find(graph, "act1/backward") != nullptr);
    recompute(graph, gpu());
    CHECK(find(graph, "bn1") == nullptr);
    CHECK(find(graph, "act1/backward") == nullptr);
    CHECK(passes(graph, Part::forward) == before - 4);
    CHECK(passes(graph, *find(graph, "bn1/backward/sums")) == 2);
    CHECK(passes(graph, *find(graph, "bn1/backward")) == 3);

    // The gradient of silu needs exp, which is not computed twice.
    graph = training_graph(recompute_json("silu"));
    recompute(graph, gpu());
    CHECK(find(graph, "bn1") == nullptr);
    CHECK(find(graph, "act1/backward") != nullptr);
}

TEST_CASE("what a device takes longer for is not computed again", "[recompute]") {
    Traits slow = gpu();
    slow.gflops = 100;
    Graph graph = training_graph(recompute_json("relu"));
    const int before = passes(graph, Part::backward);
    recompute(graph, slow);
    CHECK(find(graph, "act1/backward") != nullptr);
    CHECK(passes(graph, Part::backward) == before);
}

TEST_CASE("what others read stays, and is read where that is less", "[recompute]") {
    Graph graph = training_graph(recompute_json("relu", R"("act1", "bn2", )"));
    recompute(graph, gpu());
    CHECK(find(graph, "act1") != nullptr);
    CHECK(find(graph, "bn2") != nullptr);
    CHECK(passes(graph, *find(graph, "bn1/backward/sums")) == 2);
    CHECK(passes(graph, *find(graph, "bn1/backward")) == 3);

    Handmade alone;
    const ValueId twice = alone.graph.pointwise1("twice", "y0 = x0 * 2", {alone.x});
    alone.output(alone.graph.pointwise1("a", "y0 = x0 + x1", {twice, alone.y}), "a");
    alone.output(alone.graph.pointwise1("b", "y0 = sum[](x0)", {twice}), "b");
    Handmade seen = alone;
    seen.output(twice, "twice");
    CHECK_FALSE(alone.stays("twice"));
    CHECK(seen.stays("twice"));
}

TEST_CASE("what a boolean mask chooses is recomputed, too", "[recompute]") {
    Handmade masked;
    const ValueId mask = masked.made("mask", DType::boolean);
    const ValueId chosen =
        masked.graph.pointwise1("chosen", "y0 = select(x1, x0, -1)", {masked.x, mask});
    masked.output(masked.graph.pointwise1("a", "y0 = x0 + x1", {chosen, masked.y}), "a");
    masked.output(masked.graph.pointwise1("b", "y0 = max[1](x0)", {chosen}), "b");
    CHECK_FALSE(masked.stays("chosen"));
    const Node& b = *find(masked.graph, "b");
    CHECK(std::find(b.inputs.begin(), b.inputs.end(), mask) != b.inputs.end());
}

TEST_CASE("nothing is kept that was not", "[recompute]") {
    // A ReLU directly after a convolution: the gradient reads y, so x is not kept.
    std::string json = recompute_json("relu");
    for (const std::string n : {"1", "2"}) {
        const std::string bn =
            R"({"name": "bn)" + n + R"(", "type": "BatchNorm", "inputs": ["conv)" + n + "\"], ";
        const std::string copy = R"({"name": "bn)" + n +
                                 R"(", "type": "Activation", "inputs": ["conv)" + n +
                                 R"("], "options": {"activation": "identity"}, )";
        json.replace(json.find(bn), bn.size(), copy);
    }
    Graph graph = training_graph(json);
    recompute(graph, gpu());
    CHECK(reads(graph, *find(graph, "act1/backward"), "act1"));
    CHECK_FALSE(reads(graph, *find(graph, "act1/backward"), "conv1"));

    // The sum of two tensors is read at once and much later. Without it, both tensors would have to
    // be kept.
    for (const bool kept : {false, true}) {
        Handmade net;
        const ValueId sum = net.graph.pointwise1("sum", "y0 = x0 + x1", {net.x, net.y});
        net.output(net.graph.pointwise1("near", "y0 = x0 * x1 - x2", {sum, net.x, net.y}), "near");
        ValueId later = net.made("later");
        for (int i = 0; i < 6; ++i) later = net.graph.add1("Transpose", "later", {later});
        net.output(net.graph.pointwise1("far", "y0 = x0 * x1", {sum, later}), "far");
        if (kept) net.output(net.graph.pointwise1("last", "y0 = x0 - x1", {net.x, net.y}), "last");
        CHECK(net.stays("sum") == !kept);
    }
}

TEST_CASE("costly functions, random numbers and many inputs are left alone", "[recompute]") {
    const auto net_of = [](const std::string& code, int others) {
        Handmade net;
        const ValueId t = net.graph.pointwise1("t", code, {net.x});
        std::vector<ValueId> inputs{t};
        std::string sum = "y0 = x0";
        for (int i = 1; i <= others; ++i) {
            inputs.push_back(net.made("other" + std::to_string(i)));
            sum += " + x" + std::to_string(i);
        }
        net.output(net.graph.pointwise1("a", sum, inputs), "a");
        net.output(net.graph.pointwise1("b", "y0 = sum[](x0)", {t}), "b");
        return net;
    };
    CHECK_FALSE(net_of("y0 = max(x0, 0) * 3", 1).stays("t"));
    CHECK(net_of("y0 = exp(x0)", 1).stays("t"));
    CHECK(net_of("y0 = x0 + uniform(1, 2, 3)", 1).stays("t"));
    CHECK_FALSE(net_of("y0 = x0 * x0", 15).stays("t"));
    CHECK(net_of("y0 = x0 * x0", 16).stays("t"));
}

TEST_CASE("a recomputed value has the bits of the one that was stored", "[recompute]") {
    // x is close to points where the normalised value is almost 0. There a fused multiply-add would
    // change the comparison.
    const Shape shape{3, 19, 17, 15}, channels{1, 19, 1, 1};
    const auto count = static_cast<std::size_t>(shape.numel()), pixels = count / (3 * 19);
    std::vector<float> x = random_floats(count, 1);
    const std::vector<float> shift = random_floats(19, 2), rest = random_floats(19, 3, 0, 0.1),
                             rstd = random_floats(19, 4, 0.5, 2),
                             scale = random_floats(19, 5, 1, 2), offset = random_floats(19, 6);
    std::size_t contracted = 0;
    for (std::size_t i = 0; i < count; ++i) {
        const std::size_t c = i / pixels % 19;
        const float factor = rstd[c] * scale[c];
        x[i] = shift[c] + rest[c] - offset[c] / factor * (1 + x[i] * 3e-7f);
        const volatile float product = (x[i] - shift[c] - rest[c]) * factor;
        const float apart = product + offset[c];
        contracted += (apart > 0) != (std::fma(x[i] - shift[c] - rest[c], factor, offset[c]) > 0);
    }
    REQUIRE(contracted > 100);
    const std::string value = "v = (x0 - x1 - x2) * (x3 * x4) + x5; y = v <= 0 ? 0 : v; ";
    ON_EVERY_DEVICE(device) {
        const Tensor data(device, shape, x);
        std::vector<Tensor> inputs{data};
        for (const auto& each : {shift, rest, rstd, scale, offset})
            inputs.emplace_back(device, channels, each);
        const Tensor stored = ops::pointwise(value + "y0 = y", inputs).at(0);
        inputs.push_back(stored);
        // As outputs, and inside sums over few and many elements.
        const auto same = ops::pointwise(
            value +
                "y0 = (y > 0) == (x6 > 0) && y == x6; y1 = sum[0,2,3]((y > 0) != (x6 > 0)); "
                "y2 = sum[1](y != x6); y3 = sum[](y != x6)",
            inputs);
        for (const float equal : same.at(0).to_floats()) REQUIRE(equal == 1);
        for (const std::size_t k : {1, 2, 3})
            for (const float wrong : same.at(k).to_floats()) REQUIRE(wrong == 0);
    }
}

TEST_CASE("gradients are those of a network that stores everything", "[recompute]") {
    const std::string activation = GENERATE("relu", "relu6", "hardswish");
    ON_EVERY_DEVICE(device) {
        const auto run = [&](bool fuse) {
            NetOptions options = training();
            options.fuse = fuse;
            auto net = std::make_unique<Net>(make_net(device, recompute_json(activation), options));
            set_floats(*net, "data", random_floats(std::size_t{4} * 3 * 14 * 14, 3));
            set_labels(*net, "label", {0, 3, 1, 4});
            net->forward();
            net->backward();
            return net;
        };
        const auto fused = run(true), apart = run(false);
        for (const std::string& name : fused->param_names()) {
            if (!fused->is_trainable(name)) continue;
            INFO("parameter " << name);
            CHECK((bits(fused->gradient(name)) == bits(apart->gradient(name))));
        }
    }
}
