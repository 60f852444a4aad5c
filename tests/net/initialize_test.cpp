// SPDX-License-Identifier: MIT
// Initial values of parameters: checks the distributions of PyTorch's default for each type, of He
// and of Xavier, by moments and bounds.
#include "net/support.hpp"

#include <algorithm>
#include <cmath>

using namespace dlprim;
using namespace dlprim::testing;

namespace {

/// A net with one operator 'op' of this type, on an input of this shape.
Net net_of(const std::string& type, const std::string& shape, const std::string& options,
           const std::string& dtype = "float", const NetOptions& how = {}) {
    return make_net(Context("cpu"),
                    R"({"inputs": [{"name": "x", "shape": )" + shape + R"(, "dtype": ")" + dtype +
                        R"("}], "outputs": ["y"], "operators": [{"name": "op",
                              "type": ")" +
                        type + R"(", "inputs": ["x"], "outputs": ["y"], "options": )" + options +
                        "}]}",
                    how);
}

std::vector<float> values(Net& net, const std::string& name) {
    return net.param(name).to_floats();
}

/// Central moments, divided by those of the distribution.
struct Moments {
    explicit Moments(const std::vector<float>& all) {
        const auto count = static_cast<double>(all.size());
        for (const float v : all) mean += v / count;
        for (const float v : all) variance += std::pow(v - mean, 2) / count;
        for (const float v : all) kurtosis += std::pow(v - mean, 4) / (variance * variance) / count;
        for (const float v : all) most = std::max(most, std::abs(static_cast<double>(v)));
    }
    double mean = 0, variance = 0, kurtosis = 0, most = 0;
};

/// Five standard errors: random deviations stay below, and a wrong factor does not.
void check_moments(const Moments& found, std::size_t count, double deviation, double kurtosis) {
    const double error = 5 / std::sqrt(static_cast<double>(count));
    CHECK(std::abs(found.mean) < error * deviation);
    CHECK(std::abs(found.variance / (deviation * deviation) - 1) < error * std::sqrt(kurtosis - 1));
}

void check_uniform(const std::vector<float>& all, double bound) {
    INFO("uniform up to " << bound << ", " << all.size() << " values");
    const Moments found(all);
    const auto count = static_cast<double>(all.size());
    CHECK(found.most <= bound * (1 + 1e-6));
    CHECK(found.most > bound * (1 - 12 / count));
    check_moments(found, all.size(), bound / std::sqrt(3.0), 1.8);
}

void check_normal(const std::vector<float>& all, double deviation) {
    INFO("normal of " << deviation << ", " << all.size() << " values");
    REQUIRE(all.size() >= 10000);
    const Moments found(all);
    check_moments(found, all.size(), deviation, 3);
    CHECK(std::abs(found.kurtosis - 3) < 0.4);
    CHECK(found.most > 3.5 * deviation);
    CHECK(found.most < 7 * deviation);
}

void check_constant(const std::vector<float>& all, float value) {
    CHECK(!all.empty());
    CHECK(std::count(all.begin(), all.end(), value) == static_cast<std::ptrdiff_t>(all.size()));
}

/// Layers with the weights of a linear map, and their fans as PyTorch counts them: fan_in is the
/// weight's second size times the kernel, and fan_out its first size times the kernel, whatever the
/// groups and the direction.
struct Linear {
    const char *type, *shape, *options;
    std::vector<std::int64_t> weight;
    double fan_in, fan_out;
};

const Linear linears[] = {
    {"InnerProduct", "[1, 30, 5, 2]", R"({"outputs": 200})", {200, 300}, 300, 200},
    {"Convolution2D",
     "[1, 32, 9, 9]",
     R"({"channels_out": 96, "kernel": [3, 5], "stride": 2})",
     {96, 32, 3, 5},
     480,
     1440},
    {"Convolution2D",
     "[1, 64, 9, 9]",
     R"({"channels_out": 128, "kernel": 3, "groups": 4})",
     {128, 16, 3, 3},
     144,
     1152},
    {"Convolution2D",
     "[1, 512, 9, 9]",
     R"({"channels_out": 512, "kernel": 5, "groups": 512})",
     {512, 1, 5, 5},
     25,
     12800},
    {"TransposedConvolution2D",
     "[1, 64, 9, 9]",
     R"({"channels_out": 32, "kernel": 3})",
     {64, 32, 3, 3},
     288,
     576},
    {"TransposedConvolution2D",
     "[1, 128, 9, 9]",
     R"({"channels_out": 64, "kernel": [2, 4], "groups": 4})",
     {128, 16, 2, 4},
     128,
     1024},
};

}  // namespace

TEST_CASE("layers of products start as PyTorch's, as He's and as Xavier's", "[initialize]") {
    for (const Linear& one : linears) {
        INFO(one.type << ' ' << one.options);
        Net net = net_of(one.type, one.shape, one.options);
        const double bound = 1 / std::sqrt(one.fan_in);  // kaiming_uniform_ with a = sqrt(5)
        net.initialize();
        CHECK(net.param("op.0").shape() == Shape(one.weight));
        check_uniform(values(net, "op.0"), bound);
        check_uniform(values(net, "op.1"), bound);
        net.initialize("he");
        check_normal(values(net, "op.0"), std::sqrt(2 / one.fan_in));
        check_uniform(values(net, "op.1"), bound);
        net.initialize("xavier");
        check_uniform(values(net, "op.0"), std::sqrt(6 / (one.fan_in + one.fan_out)));
        check_uniform(values(net, "op.1"), bound);
    }
}

TEST_CASE("recurrent layers start uniform by their hidden size", "[initialize]") {
    for (const char* type : {"LSTM", "GRU"}) {
        Net net = net_of(type, "[3, 2, 50]",
                         R"({"hidden_size": 64, "num_layers": 2, "bidirectional": true})");
        net.initialize();
        CHECK(net.param_names().size() == 16);
        for (const std::string& name : net.param_names()) {
            INFO(type << ' ' << name);
            check_uniform(values(net, name), 1 / 8.0);
        }
    }
}

TEST_CASE("embeddings start normal, the padding at zero", "[initialize]") {
    for (const std::string method : {"default", "he", "xavier"}) {
        Net plain = net_of("Embedding", "[2, 3]",
                           R"({"num_embeddings": 200, "embedding_dim": 100})", "int");
        plain.initialize(method);
        check_normal(values(plain, "op.0"), 1);
        Net padded = net_of("Embedding", "[2, 3]", R"({"num_embeddings": 200,
                            "embedding_dim": 100, "padding_idx": 7})",
                            "int");
        padded.initialize(method);
        std::vector<float> expected = values(plain, "op.0");
        std::fill_n(expected.begin() + 700, 100, 0.0f);
        CHECK((values(padded, "op.0") == expected));
    }
}

TEST_CASE("norms and PReLU start at constants", "[initialize]") {
    for (const std::string method : {"default", "he", "xavier"}) {
        Net norm = net_of("BatchNorm", "[2, 30, 4, 4]", "{}");
        norm.initialize(method);
        for (const auto& [name, value] : {std::pair{"op.0", 0.0f}, std::pair{"op.1", 1.0f},
                                          std::pair{"op.2", 1.0f}, std::pair{"op.3", 0.0f}})
            check_constant(values(norm, name), value);
        for (const auto& [type, options] : {std::pair{"LayerNorm", R"({"dims": 2})"},
                                            std::pair{"GroupNorm", R"({"num_groups": 6})"}}) {
            Net other = net_of(type, "[2, 30, 4, 4]", options);
            other.initialize(method);
            check_constant(values(other, "op.0"), 1);
            check_constant(values(other, "op.1"), 0);
        }
        Net prelu = net_of("PReLU", "[2, 30, 4, 4]", R"({"num_parameters": 30})");
        prelu.initialize(method);
        check_constant(values(prelu, "op.0"), 0.25f);
        Net given = net_of("PReLU", "[2, 30, 4, 4]", R"({"init": 0.125})");
        given.initialize(method);
        check_constant(values(given, "op.0"), 0.125f);
    }
}

TEST_CASE("first values depend on the seed and the name, not on the device", "[initialize]") {
    const auto values_of = [](const Context& device, std::uint64_t seed) {
        NetOptions how{.seed = seed};
        Net net = make_net(device, R"({"inputs": [{"name": "x", "shape": [2, 50]}],
            "outputs": ["y"], "operators": [
            {"name": "a", "type": "InnerProduct", "inputs": ["x"], "outputs": ["h"],
             "options": {"outputs": 50}},
            {"name": "b", "type": "InnerProduct", "inputs": ["h"], "outputs": ["y"],
             "options": {"outputs": 50}}]})",
                           how);
        return all_bits(net);
    };
    const auto expected = values_of(Context("cpu"), 1);
    CHECK((expected.at("a.0") != expected.at("b.0")));
    CHECK((expected.at("a.1") != expected.at("b.1")));
    ON_EVERY_DEVICE(device) {
        CHECK((values_of(device, 1) == expected));
        for (const std::uint64_t seed :
             {std::uint64_t{2}, std::uint64_t{1} + (std::uint64_t{1} << 32)})
            for (const auto& [name, bits] : values_of(device, seed))
                CHECK((bits != expected.at(name)));
    }
}

TEST_CASE("A Parameter starts from its value", "[initialize]") {
    const char* const json = R"({"inputs": [{"name": "x", "shape": [2]}], "outputs": ["y"],
        "operators": [
            {"name": "given", "type": "Parameter", "inputs": [], "outputs": ["given"],
             "options": {"shape": [2], "value": -1.5}},
            {"name": "plain", "type": "Parameter", "inputs": [], "outputs": ["plain"],
             "options": {"shape": [2]}},
            {"name": "sum", "type": "Pointwise", "inputs": ["x", "given", "plain"],
             "outputs": ["y"], "options": {"code": "y0 = x0 + x1 + x2"}}]})";
    Net net = make_net(Context("cpu"), json);
    CHECK(values(net, "given.0") == std::vector<float>{-1.5f, -1.5f});
    CHECK(values(net, "plain.0") == std::vector<float>{0, 0});
}
