// SPDX-License-Identifier: MIT
// Aliases: other names of operators with options of their own. A network with one computes what it
// computes with the operator's type, and whatever speaks of a node says the name that it was given.
#include "base/text.hpp"
#include "graph/declared_operator.hpp"
#include "net/support.hpp"

#include <dlprim/describe.hpp>
#include <dlprim/ops.hpp>

using namespace dlprim;
using namespace dlprim::testing;

namespace {

/// An activation by other names of its options.
struct Leak {
    static constexpr std::string_view type = "Leak", group = "elementwise", takes = "a tensor";
    double slope = 0.01;
    bool forbidden = false;
    ops::Activation meant() const {
        require(!forbidden, "forbidden was given");
        return {.activation = "leaky_relu", .alpha = slope};
    }
    static constexpr auto fields() {
        return ops::option_table(ops::option<&Leak::slope>("below 0"),
                                 ops::option<&Leak::forbidden>("an error"));
    }
};

std::string net_of(const std::string& type, const std::string& options) {
    return R"({"inputs": [{"name": "x", "shape": [2, 3]}], "outputs": ["y"], "operators": [
        {"name": "act", "type": ")" +
           type + R"(", "inputs": ["x"], "outputs": ["y"], "options": )" + options + "}]}";
}

/// Registers the aliases, once.
void add_aliases() {
    static const bool added = [] {
        OperatorRegistry::instance().add(alias_of(Leak()));
        OperatorRegistry::instance().add(TypeAlias{"Function", "Activation"});
        return true;
    }();
    (void)added;
}

}  // namespace

TEST_CASE("an alias computes what its operator does", "[alias]") {
    add_aliases();
    const std::string leaky = R"({"activation": "leaky_relu", "alpha": 0.5})";
    ON_EVERY_DEVICE(device) {
        const Tensor x(device, {2, 3}, random_floats(6, 1)),
            dy(device, {2, 3}, random_floats(6, 2));
        const Bytes right = bits(ops::call("Activation", leaky, {x}).at(0));
        CHECK(bits(ops::call("Leak", R"({"slope": 0.5})", {x}).at(0)) == right);
        CHECK(bits(ops::call("Function", leaky, {x}).at(0)) == right);
        CHECK(bits(ops::backward("Leak", R"({"slope": 0.5})", {x}, {}, {dy}).at(0)) ==
              bits(ops::backward("Activation", leaky, {x}, {}, {dy}).at(0)));
        for (const auto& text :
             {net_of("Leak", R"({"slope": 0.5})"), net_of("Activation", leaky)}) {
            Net net = Net::from_json(device, text);
            net.input("x").copy_from(x.to_floats());
            net.forward();
            CHECK(bits(net.output("y")) == right);
        }
    }
}

TEST_CASE("descriptions, errors and hints speak of the alias", "[alias]") {
    add_aliases();
    const OperatorDescription described = describe(net_of("Leak", "{}")).operators.at(0);
    CHECK(described.type == "Leak");
    CHECK(described.options == R"({"forbidden": false, "slope": 0.01})");
    CHECK(describe(net_of("Function", R"({"activation": "relu"})")).operators.at(0).type ==
          "Function");
    check_error(ErrorKind::invalid_argument, {"[Leak 'act']", "slope"},
                [] { describe(net_of("Leak", R"({"slop": 1})")); });
    check_error(ErrorKind::invalid_argument, {"[Leak 'act']", "forbidden was given"},
                [] { describe(net_of("Leak", R"({"forbidden": true})")); });
    check_error(ErrorKind::invalid_argument, {"'Leek'", "did you mean 'Leak'"},
                [] { describe(net_of("Leek", "{}")); });
}

TEST_CASE("a type or an alias chooses precision and engine", "[alias]") {
    add_aliases();
    const auto precision_by = [](const std::string& what, const std::string& type = "Leak",
                                 const std::string& attrs = "{}") {
        NetOptions options;
        options.precisions = {{what, Precision::fp16}};
        return describe(net_of(type, attrs), options).operators.at(0).precision;
    };
    CHECK(precision_by("Leak") == Precision::fp16);
    CHECK(precision_by("Activation") == Precision::fp16);
    CHECK(precision_by("Function") == Precision::fp32);
    CHECK(precision_by("Function", "Activation", R"({"activation": "relu"})") == Precision::fp16);
    Graph graph;
    Value value;
    value.spec = {{2, 3}, DType::f32};
    const ValueId x = graph.add_value(std::move(value));
    graph.add("Leak", "by alias", {x}, {});
    graph.add("Activation", "by type", {x}, {{"activation", std::string("relu")}});
    const auto named = [&](std::string_view what) {
        return std::pair(is_named(graph.nodes[0], what), is_named(graph.nodes[1], what));
    };
    CHECK(named("Activation") == std::pair(true, true));
    CHECK(named("Leak") == std::pair(true, true));  // a pass may have made the second
    CHECK(named("Function") == std::pair(false, true));
    CHECK(named("Softmax") == std::pair(false, false));
}

TEST_CASE("convolutions have the names of before", "[alias]") {
    const std::string options = R"({"channels_out": 2, "kernel": 3, "pad": 1, "bias": false})";
    ON_EVERY_DEVICE(device) {
        const Tensor x(device, {1, 2, 4, 5}, random_floats(40, 1)),
            weight(device, {2, 2, 3, 3}, random_floats(36, 2));
        for (const std::string type : {"Convolution", "TransposedConvolution"}) {
            const Bytes right = bits(ops::call(type, options, {x}, {weight}).at(0));
            for (const char* const ending : {"2D", "ND"})
                CHECK(bits(ops::call(type + ending, options, {x}, {weight}).at(0)) == right);
        }
    }
    Graph graph;
    Value value;
    value.spec = {{1, 2, 4, 5}, DType::f32};
    const ValueId image = graph.add_value(value);
    value.spec.shape = {2, 2, 3, 3};
    graph.add("Convolution", "conv", {image, graph.add_value(value)},
              {{"channels_out", std::int64_t{2}}, {"kernel", Ints{3}}, {"bias", false}});
    CHECK(is_named(graph.nodes[0], "Convolution2D"));  // --engine Convolution2D=conv2d.reference
}
