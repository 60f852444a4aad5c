// SPDX-License-Identifier: MIT
// Tests of the engines on matrix units. Without a device: which engines apply to a device with a
// given matrix unit and local memory, which of them the planner chooses for products, and that
// their tunings can be estimated. On devices that have such a unit: that each of these engines
// computes the right products.
#include "engine/engine.hpp"
#include "engine/laid_out.hpp"
#include "engine/matrix/unit.hpp"
#include "formats/json_net.hpp"
#include "graph/description.hpp"
#include "graph/operator.hpp"
#include "graph/passes/passes.hpp"
#include "net/support.hpp"
#include "plan/choose.hpp"
#include "support/gpu_traits.hpp"

#include <cmath>
#include <limits>
#include <map>
#include <set>

using namespace dlprim;
using namespace dlprim::testing;

namespace {

const char* const units_json = R"({
  "inputs": [{"name": "data", "shape": [8, 3, 64, 64]}],
  "outputs": ["loss"],
  "operators": [
    {"name": "first", "type": "Convolution2D", "inputs": ["data"], "outputs": ["a"],
     "options": {"channels_out": 64, "kernel": 7, "stride": 2, "pad": 3}},
    {"name": "second", "type": "Convolution2D", "inputs": ["a"], "outputs": ["b"],
     "options": {"channels_out": 256, "kernel": 3, "pad": 1}},
    {"name": "third", "type": "InnerProduct", "inputs": ["b"], "outputs": ["loss"],
     "options": {"outputs": 64}}
  ]
})";

Traits gpu(bool wgmma, bool mma, std::uint64_t kib) {
    return with_matrix_units(as_gpu(Context("cpu").traits()), wgmma, mma, kib);
}

/// Returns the names of the engines on matrix units that apply to a training step. If the precision
/// is fp16 or bf16, the images have that type.
std::set<std::string> applying(const Traits& device, Precision precision) {
    Graph graph = build_graph(parse_net_json(units_json, "network"), {}, 0, true, precision);
    expand_composites(graph);
    differentiate(graph);
    lower(graph);
    std::set<std::string> names;
    for (const Node& node : graph.nodes) {
        Problem problem = problem_of(device, graph, node, {});
        if (precision == Precision::fp16 || precision == Precision::bf16) {
            const DType type = precision == Precision::fp16 ? DType::f16 : DType::bf16;
            problem.precision = precision;
            problem.inputs[0].dtype = type;
            if (problem.op == "Convolution2DBackwardFilter") problem.inputs[1].dtype = type;
        }
        for (const Engine* engine : EngineRegistry::instance().of(problem.op, false)) {
            const std::string name(engine->name());
            if (name.find("mma_") == std::string::npos) continue;
            if (!engine->is_applicable(device, problem)) continue;
            names.insert(name);
            INFO(name << " for " << problem.key(false));
            for (const LayoutChoice& choice : engine->layouts(device, problem)) {
                Problem laid = problem;
                for (std::size_t i = 0; i < choice.inputs.size(); ++i)
                    laid.inputs[i].layout = choice.inputs[i];
                const Tuning standard = engine->default_tuning(device, laid);
                CHECK(std::isfinite(engine->estimate(device, laid, standard)));
                for (const auto& [key, values] : engine->tune_space(device, laid).values)
                    CHECK(!values.empty());
                for (const Tuning& tuning : tunings_of(*engine, device, laid)) {
                    CHECK(std::isfinite(engine->estimate(device, laid, tuning)));
                    engine->workspace_bytes(device, laid, tuning);
                }
            }
        }
    }
    return names;
}

std::set<std::string> of_unit(const std::set<std::string>& names, std::string_view unit) {
    std::set<std::string> found;
    for (const std::string& name : names) {
        const std::size_t dot = name.find('.') + 1;
        if (name.compare(dot, unit.size() + 1, std::string(unit) + '_') == 0)
            found.insert(name.substr(0, dot) + name.substr(dot + unit.size() + 1));
    }
    return found;
}

/// Returns an H200 (wgmma) or an A100 (mma), as their drivers describe them.
Traits large_gpu(MatrixUnit unit) {
    const bool h200 = unit == MatrixUnit::wgmma;
    Traits traits = gpu(h200, !h200, 163);
    traits.compute_units = h200 ? 132 : 108;
    traits.local_bytes = 48 << 10;
    traits.max_alloc_bytes = std::uint64_t(16) << 30;
    traits.gflops = traits.compute_units * 128 * 2 * (h200 ? 1.98 : 1.41);
    traits.gbytes_per_s = traits.compute_units * 30;
    traits.launch_us = 5;
    return traits;
}

/// Returns a network with attention between inner products. Attention reads [rows, features] as
/// [batches, length, depth].
std::string attention_network(int rows, int features, int batches, int length, int depth) {
    std::string text = R"({
  "inputs": [{"name": "data", "shape": [ROWS, FEATURES]}],
  "outputs": ["scores"],
  "operators": [
    {"name": "first", "type": "InnerProduct", "inputs": ["data"], "outputs": ["hidden"],
     "options": {"outputs": FEATURES, "activation": "silu"}},
    {"name": "q", "type": "InnerProduct", "inputs": ["hidden"], "outputs": ["q_rows"],
     "options": {"outputs": FEATURES}},
    {"name": "k", "type": "InnerProduct", "inputs": ["hidden"], "outputs": ["k_rows"],
     "options": {"outputs": FEATURES}},
    {"name": "v", "type": "InnerProduct", "inputs": ["hidden"], "outputs": ["v_rows"],
     "options": {"outputs": FEATURES}},
    {"name": "q_heads", "type": "Reshape", "inputs": ["q_rows"], "outputs": ["q"],
     "options": {"dims": [HEADS]}},
    {"name": "k_heads", "type": "Reshape", "inputs": ["k_rows"], "outputs": ["k"],
     "options": {"dims": [HEADS]}},
    {"name": "v_heads", "type": "Reshape", "inputs": ["v_rows"], "outputs": ["v"],
     "options": {"dims": [HEADS]}},
    {"name": "attention", "type": "Attention", "inputs": ["q", "k", "v"], "outputs": ["heads"]},
    {"name": "joined", "type": "Reshape", "inputs": ["heads"], "outputs": ["rows"],
     "options": {"dims": [ROWS, -1]}},
    {"name": "scores", "type": "InnerProduct", "inputs": ["rows"], "outputs": ["scores"],
     "options": {"outputs": FEATURES}}
  ]
})";
    const auto put = [&](const std::string& word, const std::string& value) {
        for (std::size_t at; (at = text.find(word)) != std::string::npos;)
            text.replace(at, word.size(), value);
    };
    put("ROWS", std::to_string(rows));
    put("FEATURES", std::to_string(features));
    put("HEADS",
        std::to_string(batches) + ", " + std::to_string(length) + ", " + std::to_string(depth));
    return text;
}

struct Best {
    double seconds = std::numeric_limits<double>::infinity();
    std::string engine;
};
/// Returns the engine with the smallest estimate, which includes what it packs in each run.
Best best_of(const Traits& device, const Problem& problem) {
    Best best;
    for (const Engine* engine : EngineRegistry::instance().of(problem.op, false)) {
        if (!engine->is_applicable(device, problem)) continue;
        for (const LayoutChoice& choice : engine->layouts(device, problem)) {
            const Problem laid = with_layouts(problem, choice);
            double seconds = engine->estimate(device, laid, engine->default_tuning(device, laid));
            for (std::size_t i = 0; i < choice.inputs.size(); ++i)
                seconds += conversion_seconds(device, problem.inputs[i], {}, choice.inputs[i]);
            if (seconds < best.seconds) best = {seconds, std::string(engine->name())};
        }
    }
    return best;
}

/// Returns the engines of a training step's products, by the product's name.
std::map<std::string, std::string> chosen(const Traits& device, const std::string& text,
                                          Precision precision) {
    Graph graph = build_graph(parse_net_json(text, "network"), {}, 0, true, precision);
    expand_composites(graph);
    differentiate(graph, {false, true});
    lower(graph);
    merge_pointwise(graph);
    lower_precision(graph, 4096, 1, [&](const Graph& g, const Node& node) {
        return best_of(device, problem_of(device, g, node, {})).seconds;
    });
    std::map<std::string, std::string> engines;
    for (const Node& node : graph.nodes) {
        if (node.removed || (node.op->type() != "MatMul" && node.op->type() != "InnerProduct"))
            continue;
        const Problem problem = problem_of(device, graph, node, {});
        CHECK(problem.precision == precision);
        engines[node.name] = best_of(device, problem).engine;
    }
    return engines;
}

/// Returns the results of a training step: the output, and the gradients of inputs and parameters.
std::map<std::string, std::vector<float>> results(Net& net) {
    net.forward();
    net.backward();
    std::map<std::string, std::vector<float>> found{{"scores", net.output("scores").to_floats()}};
    for (const std::string& name : net.gradient_names())
        found["gradient of " + name] = net.gradient(name).to_floats();
    return found;
}

}  // namespace

TEST_CASE("a device's matrix unit has the engines of the other", "[matrix_units]") {
    for (const Precision precision :
         {Precision::fp32, Precision::tf32, Precision::fp16, Precision::bf16}) {
        INFO(name_of(precision));
        const auto large = applying(gpu(true, false, 0), precision);
        const auto small = applying(gpu(false, true, 227), precision);
        CHECK(large.size() >= 4);
        CHECK(of_unit(large, "wgmma").size() == large.size());
        auto of_warpgroups = of_unit(large, "wgmma");
        // This engine multiplies taps where they are in the window. That is not written for the
        // instructions of a warp yet.
        of_warpgroups.erase("conv2d.window");
        CHECK((of_unit(small, "mma") == of_warpgroups));
        CHECK(of_unit(small, "wgmma").empty());
        CHECK(
            (of_unit(applying(gpu(false, true, 163), precision), "mma") == of_unit(small, "mma")));
        CHECK(applying(gpu(false, false, 227), precision).empty());
    }
}

/// Whether an engine multiplies operands that are stored in 16 bits as they are.
bool reads_bfloat(const std::string& engine) {
    return engine.find("_half") != std::string::npos;
}

/// Whether an engine's name behind its operator, `start` and a way, is one that makes halves of
/// floats.
bool splits_floats(const std::string& engine, const std::string& start) {
    return engine == start + "split" || engine == start + "planes" ||
           engine == start + "matrix_planes";
}

TEST_CASE("a type whose matrix instructions do not work has none of its engines",
          "[matrix_units]") {
    for (const MatrixUnit unit : matrix_units) {
        INFO(name_of(unit));
        const Traits both = large_gpu(unit);
        Traits no_bf16 = both, no_fp16 = both;
        no_bf16.matrix_bf16 = no_fp16.matrix_fp16 = false;
        for (const Precision precision : {Precision::fp32, Precision::tf32, Precision::fp16}) {
            INFO(name_of(precision));
            CHECK((applying(no_bf16, precision) == applying(both, precision)));
            CHECK(applying(no_fp16, precision).empty());
        }
        // Products of halves also apply to operands that are stored as bfloat16, if these are
        // matrices.
        std::set<std::string> by_halves, by_bfloats;
        for (const std::string& name : applying(both, Precision::bf16))
            (reads_bfloat(name) ? by_bfloats : by_halves).insert(name);
        CHECK(by_bfloats.size() >= 4);
        CHECK((applying(no_bf16, Precision::bf16) == by_halves));
        CHECK((applying(no_fp16, Precision::bf16) == by_bfloats));

        const std::string text = attention_network(4096, 512, 32, 512, 128);
        CHECK((chosen(no_bf16, text, Precision::fp16) == chosen(both, text, Precision::fp16)));
        for (const auto& [name, engine] : chosen(no_bf16, text, Precision::bf16)) {
            INFO(name << " by " << engine);
            const std::string way = engine.substr(engine.find('.') + 1);
            const std::string start = std::string(name_of(unit)) + '_';
            CHECK(splits_floats(way, start));
        }

        // An engine also needs the unit to work for the type to which it rounds results.
        const Graph graph =
            build_graph(parse_net_json(units_json, "network"), {}, 0, false, Precision::bf16);
        const Engine* engine =
            EngineRegistry::instance().find("conv2d." + std::string(name_of(unit)) + "_half");
        REQUIRE(engine != nullptr);
        int seen = 0;
        for (const Node& node : graph.nodes) {
            if (node.name != "second") continue;
            ++seen;
            Problem problem = problem_of(both, graph, node, {});
            problem.precision = Precision::bf16;
            for (const auto& [from, to] :
                 {std::pair(DType::f16, DType::bf16), std::pair(DType::bf16, DType::f16)}) {
                problem.inputs[0].dtype = from;
                problem.outputs[0].dtype = to;
                CHECK(engine->is_applicable(both, problem).ok);
                CHECK_FALSE(engine->is_applicable(no_bf16, problem).ok);
                CHECK_FALSE(engine->is_applicable(no_fp16, problem).ok);
            }
        }
        CHECK(seen == 1);
    }
}

TEST_CASE("an engine says which type's instructions it lacks", "[matrix_units]") {
    Traits device = large_gpu(MatrixUnit::wgmma);
    device.matrix_bf16 = false;
    CHECK(unit_verdict(MatrixUnit::wgmma, device, {DType::f32, DType::f16}).ok);
    CHECK(unit_verdict(MatrixUnit::wgmma, device, {DType::f16, DType::bf16})
              .reason.find(name_of(DType::bf16)) != std::string::npos);
    device.matrix_bf16 = true;
    device.matrix_fp16 = false;
    CHECK(unit_verdict(MatrixUnit::wgmma, device, {DType::f32, DType::bf16}).ok);
    CHECK_FALSE(unit_verdict(MatrixUnit::wgmma, device, {DType::bf16, DType::f16}).ok);
}

TEST_CASE("engines on the unit of warps keep to its local memory", "[matrix_units]") {
    const Traits device = gpu(false, true, 99);
    const auto exact = applying(device, Precision::fp32);
    CHECK(exact.count("conv2d.mma_planes") == 1);
    CHECK(exact.count("conv2d.mma_narrow") == 1);
    CHECK(exact.count("conv2d.mma_split") == 0);
    CHECK(exact.count("conv2d_backward_filter.mma_split") == 0);
    CHECK((applying(device, Precision::tf32) == applying(gpu(false, true, 227), Precision::tf32)));
    CHECK((applying(device, Precision::fp16) == applying(gpu(false, true, 227), Precision::fp16)));
    CHECK(applying(gpu(false, true, 48), Precision::fp32).empty());
    CHECK(applying(gpu(false, true, 0), Precision::fp16).empty());
}

TEST_CASE("products of attention and of inner products are given to the matrix unit",
          "[matrix_units]") {
    for (const MatrixUnit unit : matrix_units)
        for (const Precision precision :
             {Precision::fp32, Precision::tf32, Precision::fp16, Precision::bf16}) {
            INFO(name_of(unit) << " in " << name_of(precision));
            const std::string start = std::string(name_of(unit)) + '_';
            std::set<std::string> ways;
            // The forward pass has five inner products. Each has a gradient of its weights, and all
            // but the first have a gradient of their input. Attention has two products, with two
            // gradients each.
            const auto engines =
                chosen(large_gpu(unit), attention_network(4096, 512, 32, 512, 128), precision);
            CHECK(engines.size() == 5 + 5 + 4 + 2 + 4);
            for (const auto& [name, engine] : engines) {
                INFO(name << " by " << engine);
                const std::string way = engine.substr(engine.find('.') + 1);
                CHECK(way.compare(0, start.size(), start) == 0);
                ways.insert(way.substr(way.find('_') + 1));
            }
            const bool narrow = precision == Precision::fp16 || precision == Precision::bf16;
            if (!narrow)
                for (const std::string& way : ways) CHECK(splits_floats(way, ""));
            // Products whose operands are both stored in 16 bits read them without a conversion.
            for (const char* const name : {"attention/scores", "attention/scores/backward_a",
                                           "attention/scores/backward_b", "attention/values"})
                if (narrow) CHECK(engines.at(name) == "matmul." + start + "direct");
        }
}

TEST_CASE("products come out right by every engine on matrix units", "[matrix_units]") {
    const std::string text = attention_network(256, 64, 8, 64, 32);
    // The gradients are as large as the values, so halves can hold them without a loss scale.
    const std::vector<float> data = random_floats(256 * 64, 3), seed = random_floats(256 * 64, 4);
    NetOptions options = training(2);
    options.input_gradients = options.output_gradients = true;
    const auto prepare = [&](Net& net) {
        set_floats(net, "data", data);
        net.output_gradient("scores").copy_from_host(seed.data(), seed.size() * sizeof(float));
    };
    Net exact = make_net(Context("cpu"), text, options);
    prepare(exact);
    const auto wanted = results(exact);
    ON_EVERY_DEVICE(device) {
        // The planner's own choice, and then each of these engines where it applies.
        std::vector<std::string> ways{""};
        for (const MatrixUnit unit : matrix_units)
            if (unit_verdict(unit, device.traits(), {DType::f16, DType::bf16}))
                for (const char* const way : {"_split", "_matrix_planes", "_direct"})
                    ways.push_back(std::string(name_of(unit)) + way);
        for (const Precision precision :
             {Precision::fp32, Precision::tf32, Precision::fp16, Precision::bf16})
            for (const std::string& way : ways) {
                INFO(name_of(precision) << " by " << (way.empty() ? "choice" : way));
                NetOptions other = options;
                other.precision = precision;
                if (!way.empty()) {
                    other.engines.emplace_back("MatMul", "matmul." + way);
                    other.engines.emplace_back("InnerProduct", "inner_product." + way);
                }
                Net net = make_net(device, text, other);
                copy_params(exact, net);
                prepare(net);
                const double bound = precision == Precision::fp32   ? 3e-6
                                     : precision == Precision::bf16 ? 1.6e-2
                                                                    : 2e-3;
                const auto found = results(net);
                REQUIRE(found.size() == wanted.size());
                for (const auto& [name, values] : wanted) {
                    INFO(name);
                    double error = 0, size = 0;
                    for (std::size_t i = 0; i < values.size(); ++i) {
                        const double d = static_cast<double>(found.at(name)[i]) - values[i];
                        error += d * d;
                        size += static_cast<double>(values[i]) * values[i];
                    }
                    CHECK(std::sqrt(error) <= bound * std::sqrt(size));
                }
            }
    }
}
