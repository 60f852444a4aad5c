// SPDX-License-Identifier: MIT
// Precision: where the precision of an operator or of the net applies. Devices without an engine
// for a precision compute in fp32.
#include "engine/engine.hpp"
#include "formats/json_net.hpp"
#include "graph/description.hpp"
#include "graph/operator.hpp"
#include "graph/passes/passes.hpp"
#include "net/support.hpp"
#include "plan/choose.hpp"

using namespace dlprim;
using namespace dlprim::testing;

namespace {

/// Operators that become several nodes: activations, an LSTM, a folded norm, gradients. `first` and
/// `second` have a precision of their own, and `third` does not.
const char* const precision_json = R"({
  "inputs": [{"name": "data", "shape": [4, 16, 8, 8]}, {"name": "words", "shape": [3, 4, 6]}],
  "outputs": ["loss"],
  "operators": [
    {"name": "first", "type": "Convolution2D", "inputs": ["data"], "outputs": ["a"],
     "options": {"channels_out": 8, "kernel": 3, "activation": "relu"}, "precision": "tf32"},
    {"name": "bn", "type": "BatchNorm", "inputs": ["a"], "outputs": ["n"]},
    {"name": "second", "type": "Convolution2D", "inputs": ["n"], "outputs": ["b"],
     "options": {"channels_out": 8, "kernel": 3}, "precision": "fp32"},
    {"name": "bn2", "type": "BatchNorm", "inputs": ["b"], "outputs": ["m"]},
    {"name": "third", "type": "InnerProduct", "inputs": ["m"], "outputs": ["c"],
     "options": {"outputs": 6, "activation": "relu"}},
    {"name": "memory", "type": "LSTM", "inputs": ["words"], "outputs": ["d"],
     "options": {"hidden_size": 6}, "precision": "tf32"},
    {"name": "sum", "type": "Elementwise", "inputs": ["c", "d"], "outputs": ["loss"]}
  ]
})";

Graph graph_of(Precision precision, bool train) {
    Graph graph = build_graph(parse_net_json(precision_json, "network"), {}, 0, train, precision);
    expand_composites(graph);
    if (train)
        differentiate(graph);
    else
        fold_batch_norms(graph);
    lower(graph);
    return graph;
}

/// The nodes of an operator that multiply, counted by precision.
std::map<Precision, int> products(const Traits& device, const Graph& graph,
                                  const std::string& name) {
    std::map<Precision, int> found;
    for (const Node& node : graph.nodes) {
        if (node.name != name && !node.name.starts_with(name + "/")) continue;
        const Problem problem = problem_of(device, graph, node, {});
        if (node.op->type() == "Pointwise") {
            CHECK(problem.precision == Precision::fp32);
            continue;
        }
        std::vector<TensorSpec> inputs, outputs;
        for (const ValueId id : node.inputs) inputs.push_back(graph.spec(id));
        for (const ValueId id : node.outputs) outputs.push_back(graph.spec(id));
        if (node.op->flops(node.attrs, inputs, outputs) > 0) ++found[problem.precision];
    }
    return found;
}

Traits with_wgmma(bool has) {
    Traits traits = Context("cpu").traits();
    traits.host = traits.wide_vectors = false;
    traits.wgmma = traits.matrix_fp16 = traits.matrix_bf16 = has;
    return traits;
}

}  // namespace

TEST_CASE("precisions have names", "[precision]") {
    for (const Precision precision :
         {Precision::fp32, Precision::tf32, Precision::fp16, Precision::bf16})
        CHECK(parse_precision(name_of(precision)) == precision);
    check_error(ErrorKind::invalid_argument, {"'fp8'", "fp32", "tf32", "fp16", "bf16"},
                [] { parse_precision("fp8"); });
}

TEST_CASE("a problem's key tells precisions apart and leaves fp32 out", "[precision]") {
    Problem problem;
    problem.op = "MatMul";
    const std::string plain = problem.key(false);
    CHECK(plain.find("fp32") == std::string::npos);
    problem.precision = Precision::tf32;
    CHECK(problem.key(false) == plain + " tf32");
}

TEST_CASE("an operator's precision is that of all it becomes", "[precision]") {
    const Precision net = GENERATE(Precision::fp32, Precision::tf32);
    const bool train = GENERATE(false, true);
    INFO("net " << name_of(net) << (train ? ", training" : ", inference"));
    const Graph graph = graph_of(net, train);
    const Traits device = with_wgmma(true);
    using Counts = std::map<Precision, int>;
    // The products of the forward pass, and in training those of the gradients that are wanted.
    CHECK(products(device, graph, "first") == Counts{{Precision::tf32, train ? 2 : 1}});
    CHECK(products(device, graph, "second") == Counts{{Precision::fp32, train ? 3 : 1}});
    CHECK(products(device, graph, "third") == Counts{{net, train ? 3 : 1}});
    const Counts memory = products(device, graph, "memory");
    CHECK(memory.size() == 1);
    CHECK(memory.count(Precision::tf32) == 1);
}

TEST_CASE("without a way for it problems are those of fp32", "[precision]") {
    const Graph graph = graph_of(GENERATE(Precision::tf32, Precision::fp16, Precision::bf16), true);
    for (const Node& node : graph.nodes)
        CHECK(problem_of(with_wgmma(false), graph, node, {}).precision == Precision::fp32);
}

TEST_CASE("of tf32, processors have a way for 3x3 kernels alone", "[precision]") {
    Traits device = with_wgmma(false);
    device.wide_vectors = true;
    device.vector_width = 8;
    const Graph graph = graph_of(Precision::tf32, false);
    using Counts = std::map<Precision, int>;
    CHECK(products(device, graph, "first") == Counts{{Precision::tf32, 1}});
    CHECK(products(device, graph, "second") == Counts{{Precision::fp32, 1}});
    CHECK(products(device, graph, "third") == Counts{{Precision::fp32, 1}});
}

TEST_CASE("weights packed for one precision are not those of another", "[precision]") {
    const Graph graph = graph_of(Precision::fp32, false);
    const Traits device = with_wgmma(true);
    const Engine* engine = EngineRegistry::instance().find("conv2d.wgmma_split");
    REQUIRE(engine != nullptr);
    for (const Node& node : graph.nodes) {
        if (node.name != "second") continue;
        Problem problem = problem_of(device, graph, node, {});
        const std::vector<LayoutChoice> three = engine->layouts(device, problem);
        problem.precision = Precision::tf32;
        const std::vector<LayoutChoice> one = engine->layouts(device, problem);
        REQUIRE(one.size() == three.size());
        for (std::size_t i = 0; i < one.size(); ++i) {
            const Layout &single = one[i].inputs[1], &triple = three[i].inputs[1];
            CHECK(single.tag != triple.tag);
            CHECK(single.bytes < triple.bytes);
        }
        return;
    }
    FAIL("the node is gone");
}

TEST_CASE("a device without a way for tf32 makes the bits of fp32", "[precision]") {
    ON_EVERY_DEVICE(device) {
        // operators_test --precision tf32 covers these.
        if (device.traits().wgmma || device.traits().mma) continue;
        NetOptions options = training();
        Net exact = make_net(device, small_network, options);
        options.precision = Precision::tf32;
        Net rounded = make_net(device, small_network, options);
        copy_params(exact, rounded);
        for (Net* net : {&exact, &rounded}) {
            feed_small_network(*net, 0);
            net->forward();
            net->backward();
        }
        CHECK((bits(exact.output("scores")) == bits(rounded.output("scores"))));
        for (const std::string& name : exact.gradient_names())
            CHECK((bits(exact.gradient(name)) == bits(rounded.gradient(name))));
    }
}
