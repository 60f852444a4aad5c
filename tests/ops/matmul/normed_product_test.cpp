// SPDX-License-Identifier: MIT
// Products of few rows with weights in blocks on devices that pass for GPUs: with a norm before
// them and a gate behind them, and where nothing is aligned. And the pass that joins norms with
// products.
#include "base/text.hpp"
#include "check/fill.hpp"
#include "graph/operator.hpp"
#include "support/catch.hpp"
#include "support/devices.hpp"
#include "support/engine_trials.hpp"

#include <dlprim/dlprim.hpp>

#include <algorithm>
#include <cmath>
#include <random>

using namespace dlprim;
using testing::normals;

namespace {

HostArray weights(const std::string& blocks, std::int64_t rows, std::int64_t features,
                  std::mt19937& random) {
    const GgufType& type = block_type(blocks);
    HostArray made{block_shape(type, rows, features), {}, DType::u8};
    for (const std::byte byte :
         random_blocks(type, static_cast<std::size_t>(made.shape.numel()), random))
        made.data.push_back(std::to_integer<int>(byte));
    return made;
}

/// Compares blocks_few with the oracle, twice, so that operands are not aligned once at least.
/// With `residual` an epilogue adds a tensor.
void check(const std::string& type, const Attrs& options, std::vector<HostArray> inputs,
           bool residual = false) {
    const Operator& op = OperatorRegistry::instance().get(type);
    Problem problem;
    problem.op = type;
    problem.attrs = op.schema().complete(options, "test");
    std::vector<TensorSpec> specs;
    for (const HostArray& input : inputs) specs.push_back({input.shape, input.dtype});
    const TensorSpec made = op.infer(problem.attrs, specs).at(0);
    OracleCall call{problem.attrs, false, inputs, std::vector<HostArray>(1), {}};
    op.oracle(call);
    std::vector<double> wanted = call.outputs[0].data;
    if (residual) {
        std::mt19937 random(9);
        problem.epilogue.push_back(
            {EpilogueStage::Kind::add, static_cast<int>(inputs.size()), {}, 0, 0});
        inputs.push_back(normals(made.shape, random));
        for (std::size_t i = 0; i < wanted.size(); ++i) wanted[i] += inputs.back().data[i];
    }
    for (const HostArray& input : inputs)
        problem.inputs.push_back({input.shape, input.dtype, {}, false});
    problem.outputs.push_back({made.shape, made.dtype, {}, false});
    for (const Context& context : testing::test_devices())
        for (int time = 0; time < 2; ++time)
            testing::check_engines(context, problem, inputs, wanted,
                                   {.only = {"blocks_few", "host_blocks"}, .every_call = true});
}

void check_normed(const std::string& blocks, std::int64_t rows, std::int64_t columns,
                  std::int64_t features, const std::string& gate, bool bias,
                  bool residual = false) {
    INFO(blocks << ", " << rows << " rows, " << columns << " columns, gate '" << gate << "'");
    std::mt19937 random(7);
    std::vector<HostArray> inputs{normals({rows, features}, random),
                                  weights(blocks, columns, features, random)};
    // Rows of different magnitudes show whose root is whose factor.
    for (std::size_t i = 0; i < inputs[0].data.size(); ++i)
        inputs[0].data[i] *= 1 + 3.0 * static_cast<double>(i / static_cast<std::size_t>(features));
    if (bias) inputs.push_back(normals({columns}, random));
    inputs.push_back(normals({features}, random));
    if (!gate.empty()) inputs.push_back(weights(blocks, columns, features, random));
    check("NormedProduct", {{"blocks", blocks}, {"gate", gate}, {"eps", 1e-5}, {"bias", bias}},
          inputs, residual);
}

/// x -> norm -> products, which meet in `last`.
std::string network(int rows, const std::string& last, bool biases = false,
                    const std::string& also = "") {
    std::string text = cat(R"({"inputs": [{"name": "x", "shape": [)", rows, R"(, 64]}],
        "outputs": ["y")",
                           also, R"(], "operators": [
        {"name": "norm", "type": "RMSNorm", "inputs": ["x"], "outputs": ["n"]},)");
    for (const char* name : {"a", "b"})
        text += cat(R"({"name": ")", name, R"(", "type": "InnerProduct", "inputs": ["n"],
            "outputs": [")",
                    name, R"("], "options": {"outputs": 40, "blocks": "q8_0", "bias": )",
                    biases ? "true" : "false", "}},");
    return text + last + "]}";
}

constexpr const char* gate =
    R"({"name": "y", "type": "Pointwise", "inputs": ["b", "a"], "outputs": ["y"],
        "options": {"code": "y0 = x0 * sigmoid(x0) * x1"}})";
constexpr const char* sum =
    R"({"name": "y", "type": "Elementwise", "inputs": ["a", "b"], "outputs": ["y"]})";

/// The result, and the types of what computed it.
std::pair<std::vector<float>, std::vector<std::string>> run(const Context& device,
                                                            const std::string& text) {
    NetOptions options;
    options.mode = Mode::inference;
    Net net = Net::from_json(device, text, options);
    std::mt19937 random(3);
    for (const std::string& name : net.param_names()) {
        Tensor param = net.param(name);
        if (param.dtype() != DType::u8) {
            const HostArray values = normals(param.shape(), random);
            param.copy_from({values.data.begin(), values.data.end()});
            continue;
        }
        const auto bytes = random_blocks(block_type("q8_0"), param.bytes(), random);
        param.copy_from_host(bytes.data(), bytes.size());
    }
    const HostArray x = normals(net.input("x").shape(), random);
    net.input("x").copy_from({x.data.begin(), x.data.end()});
    net.forward();
    std::vector<std::string> types;
    for (const NodeReport& node : net.nodes())
        if (!node.engine.empty()) types.push_back(node.type);
    std::sort(types.begin(), types.end());
    return {net.output("y").to_floats(), types};
}

}  // namespace

TEST_CASE("Products of few rows normalise them") {
    for (const char* blocks : {"f16", "q4_0", "q8_0", "q4_k"})
        for (const std::int64_t rows : {1, 2, 5, 16})
            check_normed(blocks, rows, 67, std::string(blocks) == "q4_k" ? 512 : 288, "",
                         rows % 2 == 0);
    check_normed("bf16", 3, 7, 64, "", true, true);
    check_normed("q6_k", 1, 9, 256, "", false, true);
    for (const char* blocks : {"f16", "q4_0"}) check_normed(blocks, 1, 11, 1088, "", true);
}

TEST_CASE("Two products of few normalised rows meet as a gate") {
    for (const char* blocks : {"f16", "q4_0", "q8_0", "q4_k"})
        for (const std::int64_t rows : {1, 3, 9})
            check_normed(blocks, rows, 33, std::string(blocks) == "q4_k" ? 256 : 288,
                         rows == 3 ? "gelu_tanh" : "silu", false);
    for (const char* blocks : {"f16", "q4_0"}) check_normed(blocks, 2, 11, 1056, "silu", false);
}

TEST_CASE("Blocks that begin at any byte are read byte by byte") {
    std::mt19937 random(5);
    for (const char* blocks :
         {"f16", "bf16", "q4_0", "q4_1", "q5_0", "q5_1", "q8_0", "q4_k", "q5_k", "q6_k"}) {
        INFO(blocks);
        check("InnerProduct", {{"outputs", std::int64_t{9}}, {"bias", false}, {"blocks", blocks}},
              {normals({1, 512}, random), weights(blocks, 9, 512, random)});
    }
}

TEST_CASE("A norm whose readers are products of few rows is computed with them") {
    const Context host("cpu");
    using Types = std::vector<std::string>;
    struct Example {
        std::string text;
        Types types;
    };
    const Example examples[] = {
        {network(2, gate), {"NormedProduct"}},
        {network(16, gate), {"NormedProduct"}},
        // With biases they do not meet as a gate, and neither if another sees one of them.
        {network(2, gate, true), {"NormedProduct", "NormedProduct", "Pointwise"}},
        {network(2, gate, false, R"(, "a")"), {"NormedProduct", "NormedProduct", "Pointwise"}},
        {network(2, sum), {"NormedProduct", "NormedProduct"}},
        // Another reader needs the normed rows, and many rows are normalised once.
        {network(2, sum, false, R"(, "n")"), {"InnerProduct", "InnerProduct", "PointwiseRows"}},
        {network(33, sum), {"InnerProduct", "InnerProduct", "PointwiseRows"}}};
    for (const Context& device : testing::test_devices()) {
        if (device.traits().host) continue;
        INFO(device.info().name);
        for (const Example& example : examples) {
            INFO(example.text);
            const auto found = run(device, example.text), wanted = run(host, example.text);
            CHECK(found.second == example.types);
            REQUIRE(found.first.size() == wanted.first.size());
            double largest = 0, error = 0;
            for (std::size_t i = 0; i < wanted.first.size(); ++i) {
                largest = std::max(largest, std::abs(double{wanted.first[i]}));
                error = std::max(error, std::abs(double{found.first[i]} - double{wanted.first[i]}));
            }
            CHECK(error <= 2e-6 * largest);
        }
    }
}
