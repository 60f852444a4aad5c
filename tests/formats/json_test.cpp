// SPDX-License-Identifier: MIT
// Network JSON: its meaning, and errors for invalid text.
#include "formats/json_net.hpp"
#include "formats/json_tree.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"

#include <dlprim/error.hpp>

using namespace dlprim;

namespace {

std::string message(std::string_view text) {
    return testing::message_of(ErrorKind::format, [&] { parse_net_json(text, "net.json"); });
}

/// A network of one operator whose JSON has `more` after its names.
std::string one_operator(const std::string& more) {
    return R"({"inputs": [{"name": "data", "shape": [1, 3, 8, 8]}], "outputs": ["out"],
 "operators": [
  {"name": "a", "type": "Abs", "inputs": ["data"], "outputs": ["mid"]},
  {"name": "b", "type": "Abs", "inputs": ["mid"], "outputs": ["out"])" +
           more + "}]}";
}

const char* const whole = R"({
    "inputs": [
        {"name": "data", "shape": [8, 3, 32, 32]},
        {"name": "label", "shape": [8], "dtype": "int"}
    ],
    "outputs": ["prob", {"name": "loss", "loss_weight": 0.5}],
    "operators": [
        {"name": "conv", "type": "Convolution2D", "inputs": ["data"], "outputs": ["conv"],
         "options": {"channels_out": 16, "kernel": [3, 3], "bias": 0, "activation": "relu",
                     "fwd_algo": "gemm", "scale": 1.5, "list": [1, 2.5], "empty": [], "flag": true,
                     "names": ["x", "y"]},
         "params": ["w"], "frozen": 1, "recompute": true, "engine": "conv2d.reference",
         "precision": "tf32"},
        {"name": "const", "type": "Parameter", "outputs": ["p"], "options": {"shape": [1]}},
        {"name": "prob", "type": "Softmax", "inputs": ["conv"], "outputs": ["prob"]}
    ]
})";

}  // namespace

TEST_CASE("a network is read as it is written", "[json]") {
    const NetDescription net = parse_net_json(whole, "net.json");
    REQUIRE(net.inputs.size() == 2);
    CHECK(net.inputs[0].shape == Shape{8, 3, 32, 32});
    CHECK(net.inputs[0].dtype == DType::f32);
    CHECK(net.inputs[1].dtype == DType::i32);
    REQUIRE(net.outputs.size() == 2);
    CHECK_FALSE(net.outputs[0].loss_weight.has_value());
    CHECK(net.outputs[1].loss_weight == 0.5);
    REQUIRE(net.operators.size() == 3);
    const auto& conv = net.operators[0];
    CHECK(conv.type == "Convolution2D");
    CHECK(conv.params == std::vector<std::string>{"w"});
    CHECK(conv.frozen);
    CHECK(conv.recompute);
    CHECK_FALSE(net.operators[1].recompute);
    CHECK(conv.engine == "conv2d.reference");
    CHECK(conv.precision == Precision::tf32);
    CHECK_FALSE(net.operators[1].precision.has_value());
    const Attrs& options = conv.options;
    CHECK(std::get<std::int64_t>(options.at("channels_out")) == 16);
    CHECK(std::get<Ints>(options.at("kernel")) == Ints{3, 3});
    CHECK(std::get<std::int64_t>(options.at("bias")) == 0);
    CHECK(std::get<double>(options.at("scale")) == 1.5);
    CHECK(std::get<Doubles>(options.at("list")) == Doubles{1, 2.5});
    CHECK(std::get<Ints>(options.at("empty")).empty());
    CHECK(std::get<bool>(options.at("flag")));
    CHECK(std::get<Strings>(options.at("names")) == Strings{"x", "y"});
    CHECK(net.operators[1].inputs.empty());
}

TEST_CASE("a network written is read back the same", "[json]") {
    const std::string written = write_net_json(parse_net_json(whole, "net.json"));
    CHECK(write_net_json(parse_net_json(written, "again")) == written);
    CHECK(parse_net_json(written, "again").operators[0].precision == Precision::tf32);
}

TEST_CASE("options alone", "[json]") {
    CHECK(parse_options_json("").items().empty());
    CHECK(parse_options_json("{\"kernel\": 3}") == Attrs{{"kernel", std::int64_t{3}}});
    CHECK(write_options_json({{"bias", true}, {"kernel", Ints{3, 5}}}) ==
          "{\"bias\": true, \"kernel\": [3, 5]}");
    CHECK_THROWS_AS(parse_options_json("[]"), Error);
    CHECK_THROWS_AS(parse_options_json("{\"a\": {\"b\": 1}}"), Error);
}

TEST_CASE("syntax errors say line and column", "[json]") {
    CHECK_THAT(message("{\n  \"inputs\": [,]\n}"), ContainsSubstring("net.json:2:14: "));
    CHECK_THAT(message(""), ContainsSubstring("net.json:1:1: empty"));
    CHECK_THAT(message(" \n "), ContainsSubstring("empty"));
    CHECK_THAT(message("{\"inputs\": []"), ContainsSubstring("net.json:1:"));
    CHECK_THAT(message("{\"inputs\": [] } }"), ContainsSubstring("net.json:1:17: "));
    CHECK_THAT(message("{\"a\xff\": 1}"), ContainsSubstring("UTF-8"));
    CHECK_THAT(message(std::string_view("{\0}", 3)), ContainsSubstring("net.json:1:2: "));
    CHECK(message(std::string(100000, 'x')).size() < 400);
    CHECK(message("\"" + std::string(100000, 'x')).size() < 400);
}

TEST_CASE("endless nesting is refused", "[json]") {
    CHECK_THAT(message(std::string(1000000, '[')), ContainsSubstring("deeper than 64"));
    std::string objects;
    for (int i = 0; i < 100000; ++i) objects += "{\"a\":";
    CHECK_THAT(message(objects), ContainsSubstring("deeper than 64"));
    CHECK_THAT(message(std::string(64, '[') + std::string(64, ']')),
               ContainsSubstring("a network is"));
}

TEST_CASE("misspelt keys are errors that offer the nearest", "[json]") {
    CHECK_THAT(message(one_operator(", \"option\": {}")),
               ContainsSubstring("net.json:4: operators[1] has no key 'option'") &&
                   ContainsSubstring("did you mean 'options'?"));
    CHECK_THAT(message("{\"input\": [], \"outputs\": [], \"operators\": []}"),
               ContainsSubstring("did you mean 'inputs'?"));
    CHECK_THAT(message("{\"inputs\": [{\"name\": \"x\", \"shapes\": [1]}], \"outputs\": [], "
                       "\"operators\": []}"),
               ContainsSubstring("inputs[0] has no key 'shapes'"));
    CHECK_THAT(message("{\"inputs\": [], \"operators\": []}"),
               ContainsSubstring("lacks 'outputs'"));
    CHECK_THAT(message("[]"), ContainsSubstring("object of three lists"));
}

TEST_CASE("duplicate keys are errors", "[json]") {
    CHECK_THAT(message("{\"inputs\": [],\n \"inputs\": []}"),
               ContainsSubstring("net.json:2:") && ContainsSubstring("'inputs' appears twice"));
    CHECK_THAT(message(one_operator(", \"options\": {\"k\": 1, \"j\": 2, \"k\": 1}")),
               ContainsSubstring("'k' appears twice"));
}

TEST_CASE("wrong kinds name the path", "[json]") {
    CHECK_THAT(message(one_operator(", \"options\": 3")),
               ContainsSubstring("operators[1].options must be an object, not an integer"));
    CHECK_THAT(message(one_operator(", \"options\": {\"kernel\": {}}")),
               ContainsSubstring("operators[1].options.kernel must be"));
    CHECK_THAT(message(one_operator(", \"options\": {\"kernel\": [1, \"x\"]}")),
               ContainsSubstring("operators[1].options.kernel[1] mixes"));
    CHECK_THAT(message(one_operator(", \"options\": {\"kernel\": [true]}")),
               ContainsSubstring("operators[1].options.kernel[0] must be"));
    CHECK_THAT(message(one_operator(", \"options\": {\"kernel\": null}")),
               ContainsSubstring("not null"));
    CHECK_THAT(message(one_operator(", \"frozen\": 2")), ContainsSubstring("operators[1].frozen"));
    CHECK_THAT(message(one_operator(", \"recompute\": \"yes\"")),
               ContainsSubstring("operators[1].recompute must be true or false"));
    CHECK_THAT(message(one_operator(", \"params\": [\"\"]")),
               ContainsSubstring("operators[1].params[0] must not be empty"));
    CHECK_THAT(message("{\"inputs\": {}, \"outputs\": [], \"operators\": []}"),
               ContainsSubstring("inputs must be a list, not an object"));
    CHECK_THAT(message("{\"inputs\": [], \"outputs\": [3], \"operators\": []}"),
               ContainsSubstring("outputs[0] must be a tensor's name"));
    CHECK_THAT(message("{\"inputs\": [], \"outputs\": [{\"name\": \"x\", \"loss_weight\": \"1\"}], "
                       "\"operators\": []}"),
               ContainsSubstring("outputs[0].loss_weight must be a number, not a string"));
}

TEST_CASE("precisions that are not offered", "[json]") {
    CHECK(message(one_operator(", \"precision\": \"fp32\"")) == "no error");
    for (const std::string name : {"tf32", "fp16", "bf16"})
        CHECK(message(one_operator(", \"precision\": \"" + name + "\"")) == "no error");
    CHECK_THAT(message(one_operator(", \"precision\": \"fp8\"")),
               ContainsSubstring("net.json:4: operators[1].precision") &&
                   ContainsSubstring("there is no precision 'fp8'"));
    CHECK_THAT(message(one_operator(", \"precision\": \"exact\"")),
               ContainsSubstring("operators[1].precision") &&
                   ContainsSubstring("'exact'; it must be fp32, tf32, fp16 or bf16"));
    CHECK_THAT(message(one_operator(", \"precision\": 32")),
               ContainsSubstring("operators[1].precision must be a string"));
}

TEST_CASE("sizes that are wrong or overflow", "[json]") {
    const auto shaped = [](const std::string& shape) {
        return message("{\"inputs\": [{\"name\": \"x\", \"shape\": " + shape +
                       "}], \"outputs\": [], \"operators\": []}");
    };
    CHECK(shaped("[1, 2]") == "no error");
    CHECK(shaped("[2.0]") == "no error");
    CHECK_THAT(shaped("[1, 0]"), ContainsSubstring("inputs[0].shape[1] must be at least 1, not 0"));
    CHECK_THAT(shaped("[-3]"), ContainsSubstring("at least 1"));
    CHECK_THAT(shaped("[1.5]"), ContainsSubstring("must be an integer, not 1.5"));
    CHECK_THAT(shaped("[4294967296, 4294967296]"), ContainsSubstring("inputs[0].shape"));
    CHECK_THAT(shaped("[1,1,1,1,1,1,1,1,1,1,1]"), ContainsSubstring("inputs[0].shape"));
    CHECK_THAT(shaped("[99999999999999999999]"), ContainsSubstring("does not fit 64 bits"));
    CHECK_THAT(shaped("[18446744073709551615]"), ContainsSubstring("does not fit 64 bits"));
    CHECK_THAT(shaped("[1e999]"), ContainsSubstring("net.json:1:"));
    CHECK_THAT(shaped("\"1,2\""), ContainsSubstring("must be a list, not a string"));
    CHECK_THAT(message("{\"inputs\": [{\"name\": \"x\", \"shape\": [1], \"dtype\": \"flot\"}], "
                       "\"outputs\": [], \"operators\": []}"),
               ContainsSubstring("inputs[0].dtype") && ContainsSubstring("float"));
}

TEST_CASE("a text too long is not read", "[json]") {
    JsonLimits limits;
    limits.bytes = 10;
    CHECK_THROWS_AS(JsonDocument("[1, 2, 3, 4]", "x", limits), Error);
}

TEST_CASE("names that are no UTF-8 are written with a mark in their place", "[json]") {
    Attrs attrs;
    attrs.set("a\xff", std::string("b\xff"));
    CHECK(write_options_json(attrs) == "{\"a\xef\xbf\xbd\": \"b\xef\xbf\xbd\"}");
}
