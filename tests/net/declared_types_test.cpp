// SPDX-License-Identifier: MIT
// Networks whose inputs are declared half or bfloat16: compares types and values of results,
// parameters, gradients and running statistics with the same network in float. Also tests which
// operators refuse double.
#include "check/compare.hpp"
#include "net/support.hpp"

using namespace dlprim;
using namespace dlprim::testing;

namespace {

std::string declared_json(const std::string& dtype) {
    return R"({"inputs": [{"name": "data", "shape": [6, 4, 9, 8], "dtype": ")" + dtype + R"("},
                          {"name": "label", "shape": [6], "dtype": "int"}],
      "outputs": ["prob", "loss"],
      "operators": [
        {"name": "conv", "type": "Convolution2D", "inputs": ["data"], "outputs": ["conv"],
         "options": {"channels_out": 8, "kernel": 3, "pad": 1, "activation": "relu"}},
        {"name": "norm", "type": "BatchNorm", "inputs": ["conv"], "outputs": ["norm"]},
        {"name": "pool", "type": "Pooling2D", "inputs": ["norm"], "outputs": ["pool"],
         "options": {"mode": "avg", "kernel": 2, "stride": 2}},
        {"name": "act", "type": "Activation", "inputs": ["pool"], "outputs": ["act"],
         "options": {"activation": "tanh"}},
        {"name": "fc", "type": "InnerProduct", "inputs": ["act"], "outputs": ["fc"],
         "options": {"outputs": 5}},
        {"name": "prob", "type": "Softmax", "inputs": ["fc"], "outputs": ["prob"]},
        {"name": "loss", "type": "SoftmaxWithLoss", "inputs": ["fc", "label"],
         "outputs": ["loss"]}]})";
}

void fill(Tensor tensor, const std::vector<double>& values) {
    const Bytes bytes = stored_as(tensor.dtype(), values);
    tensor.copy_from_host(bytes.data(), bytes.size());
}

/// Compares `net`, in evaluation or training, with the same network in float.
void check_beside_float(const Context& device, DType dtype, Mode mode) {
    const bool training = mode == Mode::training;
    NetOptions options{.mode = mode, .input_gradients = true};
    Net narrow = make_net(device, declared_json(std::string(name_of(dtype))), options);
    Net wide = make_net(device, declared_json("float"), options);

    // Both get the same numbers, which 16 bits can represent.
    const std::vector<float> random = random_floats(6 * 4 * 9 * 8, 3);
    fill(narrow.input("data"), {random.begin(), random.end()});
    fill(wide.input("data"), narrow.input("data").to_doubles());
    for (Net* net : {&narrow, &wide}) set_labels(*net, "label", {0, 4, 2, 1, 3, 4});
    narrow.initialize();
    for (const std::string& name : narrow.param_names()) {
        CHECK(name_of(narrow.param(name).dtype()) == name_of(dtype));
        fill(wide.param(name), narrow.param(name).to_doubles());
    }
    for (Net* net : {&narrow, &wide}) {
        net->params_changed();
        net->forward();
        net->backward();
    }

    // Seven operators between the data and the loss round their results by half a unit each, and so
    // do as many in the backward pass. These errors are independent, and no operator here amplifies
    // earlier errors much. The root of the sum of squares of fourteen half units is less than two
    // units, so eight units are a safe bound.
    // The errors of doubles are those of the floats beside them.
    const double unit = dtype == DType::f16 ? 0x1p-11 : dtype == DType::bf16 ? 0x1p-8 : 0x1p-20;
    for (const char* name : {"prob", "loss"}) {
        INFO("output " << name);
        CHECK(name_of(narrow.output(name).dtype()) == name_of(dtype));
        CHECK(relative_error(narrow.output(name).to_doubles(), wide.output(name).to_doubles()) <
              8 * unit);
    }
    for (const std::string& name : narrow.param_names()) {
        INFO(name);
        // Running statistics: norm.0 and norm.1. Gradients of a bias before a norm are all
        // rounding.
        if (name == "norm.0" || name == "norm.1") {
            CHECK(relative_error(narrow.param(name).to_doubles(), wide.param(name).to_doubles()) <
                  8 * unit);
            continue;
        }
        CHECK(name_of(narrow.gradient(name).dtype()) == name_of(dtype));
        CHECK(relative_error(narrow.gradient(name).to_doubles(), wide.gradient(name).to_doubles()) <
              8 * unit);
    }
    CHECK(name_of(narrow.gradient("data").dtype()) == name_of(dtype));
    CHECK(relative_error(narrow.gradient("data").to_doubles(), wide.gradient("data").to_doubles()) <
          8 * unit);
    if (training) CHECK(narrow.param("norm.0").to_doubles() != std::vector<double>(8, 0.0));
}

}  // namespace

TEST_CASE("networks of declared half and bfloat16", "[declared_types]") {
    ON_EVERY_DEVICE(device) {
        for (const DType dtype : {DType::f16, DType::bf16}) {
            for (const Mode mode : {Mode::evaluation, Mode::training}) {
                INFO(name_of(dtype) << (mode == Mode::training ? " training" : " evaluation"));
                check_beside_float(device, dtype, mode);
            }
        }
    }
}

TEST_CASE("networks of declared double", "[declared_types]") {
    ON_EVERY_DEVICE(device) {
        if (!device.traits().fp64) continue;
        for (const Mode mode : {Mode::evaluation, Mode::training})
            check_beside_float(device, DType::f64, mode);
    }
}

TEST_CASE("double where an operator computes in float", "[declared_types]") {
    ON_EVERY_DEVICE(device) {
        const std::string json = R"({
            "inputs": [{"name": "x", "shape": [1, 2, 3, 4], "dtype": "double"}], "outputs": ["y"],
            "operators": [{"name": "heads", "type": "Attention", "inputs": ["x", "x", "x"],
                           "outputs": ["y"]}]})";
        check_error(ErrorKind::unsupported, {"[Attention 'heads']", "double"},
                    [&] { make_net(device, json).prepare(); });
    }
}
