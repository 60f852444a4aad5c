// SPDX-License-Identifier: MIT
// Descriptions: names, shapes, producers and parameters, without a device.
#include "net/support.hpp"

using namespace dlprim;
using namespace dlprim::testing;

namespace {

/// An in-place operator, a parameter shared by two operators, a frozen operator, and an unnamed
/// output.
const char* const described_json = R"({
  "inputs": [{"name": "data", "shape": [2, 4]}, {"name": "label", "shape": [2], "dtype": "int"}],
  "outputs": ["scores", {"name": "nll", "loss_weight": 0.5}],
  "operators": [
    {"name": "first", "type": "InnerProduct", "inputs": ["data"], "outputs": ["x"],
     "params": ["w", "b"], "options": {"outputs": 4}},
    {"name": "relu", "type": "Activation", "inputs": ["x"], "outputs": ["x"],
     "options": {"activation": "relu"}},
    {"name": "again", "type": "InnerProduct", "inputs": ["x"], "outputs": ["y"],
     "params": ["w", "b"], "options": {"outputs": 4}},
    {"name": "last", "type": "InnerProduct", "inputs": ["y"], "outputs": ["scores"],
     "frozen": true, "precision": "tf32", "options": {"outputs": 3}},
    {"name": "loss", "type": "SoftmaxWithLoss", "inputs": ["scores", "label"],
     "outputs": ["nll"]}]})";

std::vector<std::string> names_of(const std::vector<TensorDescription>& tensors) {
    std::vector<std::string> names;
    for (const TensorDescription& tensor : tensors) names.push_back(tensor.name);
    return names;
}

}  // namespace

TEST_CASE("a description names tensors, their shapes and who makes them", "[describe]") {
    const NetworkDescription net = describe(described_json);
    CHECK(names_of(net.inputs) == std::vector<std::string>{"data", "label"});
    CHECK(net.inputs[1].dtype == DType::i32);
    CHECK(names_of(net.outputs) == std::vector<std::string>{"scores", "nll"});
    CHECK(net.losses == std::map<std::string, double>{{"nll", 0.5}});
    REQUIRE(net.operators.size() == 5);

    const OperatorDescription& first = net.operators[0];
    CHECK(first.name == "first");
    CHECK(first.type == "InnerProduct");
    CHECK(first.inputs[0].producer == -1);
    CHECK(first.inputs[0].shape == Shape{2, 4});
    CHECK(first.gflop == 2 * 2 * 4 * 4 * 1e-9);
    CHECK(first.options.find("\"outputs\": 4") != std::string::npos);
    CHECK(first.options.find("\"bias\": true") != std::string::npos);  // a default

    // Two tensors are called x; the operator "again" reads the ReLU's.
    CHECK(net.operators[1].inputs[0].producer == 0);
    CHECK(net.operators[1].outputs[0].name == "x");
    CHECK(net.operators[2].inputs[0].producer == 1);
    const OperatorDescription& loss = net.operators[4];
    CHECK(loss.inputs[0].producer == 3);
    CHECK(loss.inputs[1].producer == -1);
    CHECK(loss.outputs[0].name == "nll");
    CHECK(loss.outputs[0].shape.numel() == 1);
}

TEST_CASE("a description counts parameters once", "[describe]") {
    const NetworkDescription net = describe(described_json);
    const std::vector<ParamDescription>& first = net.operators[0].params;
    const std::vector<ParamDescription>& again = net.operators[2].params;
    const std::vector<ParamDescription>& last = net.operators[3].params;
    REQUIRE((first.size() == 2 && again.size() == 2 && last.size() == 2));
    CHECK((first[0].name == "w" && first[0].shape == Shape{4, 4} && first[0].trainable));
    CHECK((!first[0].shared && again[0].name == "w" && again[0].shared && again[1].shared));
    CHECK((!last[0].trainable && !last[0].shared && net.operators[3].frozen));
    CHECK(net.operators[3].precision == Precision::tf32);
    CHECK(net.params == 4 * 4 + 4 + 3 * 4 + 3);
    CHECK(net.trainable_params == 4 * 4 + 4);
}

TEST_CASE("a description follows the options that shapes depend on", "[describe]") {
    NetOptions options{.batch = 7, .extra_outputs = {"y"}};
    const NetworkDescription net = describe(described_json, options);
    CHECK(net.operators[4].inputs[1].shape == Shape{7});
    CHECK(names_of(net.outputs) == std::vector<std::string>{"scores", "nll", "y"});
    options.input_shapes["dta"] = Shape{1};
    check_error(ErrorKind::invalid_argument, {"'dta'", "'data'"},
                [&] { describe(described_json, options); });
    check_error(ErrorKind::format, {"network:1"}, [] { describe("{"); });
}

TEST_CASE("a net describes itself as it is now", "[describe]") {
    const Context host("cpu");
    Net net = Net::from_json(host, described_json, training());
    net.reshape(5);
    const NetworkDescription described = describe(net);
    CHECK(described.operators.back().inputs[0].shape == Shape{5, 3});
    for (const OperatorDescription& op : described.operators) {
        for (const ParamDescription& param : op.params) {
            CHECK(param.shape == net.param_shape(param.name));
            CHECK(param.trainable == net.is_trainable(param.name));
        }
    }
    CHECK(host.counters().allocations == 0);
}

TEST_CASE("resnet18 is described from its file", "[describe]") {
    const NetworkDescription net = describe_file(DLPRIM_NETS "/resnet18.json");
    CHECK(net.trainable_params == 11689512);  // as torchvision's
    double gflop = 0;
    for (const OperatorDescription& op : net.operators) gflop += op.gflop;
    CHECK(gflop == Approx(2 * 1.814).epsilon(0.001));
}
