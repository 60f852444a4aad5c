// SPDX-License-Identifier: MIT
// Models of com.microsoft's operators and of those of scikit-learn's exporters against ONNX
// Runtime's results, in files that tests/golden/make_onnx_golden.py makes. Integers are equal.
#include "onnx/device_support.hpp"

#include <algorithm>
#include <string_view>

using namespace onnx_test;
using dlprim::DType;
using dlprim::HostTensor;

namespace {

/// The datasets of one case: a model, inputs and outputs.
struct Case {
    std::string model;
    dlprim::ONNXSession::Values inputs;
    std::map<std::string, HostTensor> outputs;
};

/// By name, "TYPE.NUMBER".
std::map<std::string, Case> read_cases(const std::string& file) {
    std::map<std::string, Case> cases;
    for (const auto& [path, tensor] : dlprim::load_tensors(GOLDEN_DIR "/" + file)) {
        const std::size_t slash = path.find('/');
        Case& one = cases[path.substr(0, slash)];
        const std::string rest = path.substr(slash + 1), name = rest.substr(rest.find('/') + 1);
        if (rest == "model")
            one.model.assign(reinterpret_cast<const char*>(tensor.data.data()), tensor.data.size());
        else if (rest.starts_with("inputs/"))
            one.inputs.emplace(name, tensor);
        else
            one.outputs.emplace(name, tensor);
    }
    return cases;
}

std::vector<double> numbers(const HostTensor& tensor) {
    std::vector<double> result(static_cast<std::size_t>(tensor.shape.numel()));
    dlprim::convert(tensor.data.data(), tensor.dtype, result.data(), DType::f64, result.size());
    return result;
}

void check(const dlprim::Context& device, const std::string& name, Case one) {
    INFO(name << " on " << device.info().name);
    dlprim::ONNXModel model;
    model.parse(one.model, name);
    for (const dlprim::ONNXInput& input : model.inputs())
        if (input.dtype == "bool") {  // HDF5 has bytes
            HostTensor truth = one.inputs.at(input.name).tensor();
            truth.dtype = DType::boolean;
            one.inputs[input.name] = truth;
        }
    dlprim::ONNXSession session(device, model);
    const auto made = session.run(one.inputs);
    for (const auto& [output, wanted] : one.outputs) {
        const HostTensor& found = made.at(output).tensor();
        REQUIRE(found.shape == wanted.shape);
        REQUIRE(found.dtype == wanted.dtype);
        const std::vector<double> a = numbers(found), b = numbers(wanted);
        double scale = 0, worst = 0;
        for (std::size_t i = 0; i < a.size(); ++i) {
            scale = std::max(scale, std::abs(b[i]));
            worst = std::max(worst, std::abs(a[i] - b[i]));
        }
        CHECK(worst <= (dlprim::is_float(wanted.dtype) ? 1e-5 * scale : 0));
    }
}

void check_all(const std::string& file) {
    const std::map<std::string, Case> cases = read_cases(file);
    REQUIRE(cases.size() >= 100);
    // The host takes all; kernels for the others would take minutes to compile.
    for (const dlprim::Context& device : dlprim::testing::test_devices())
        for (const auto& [name, one] : cases)
            if (device.info().id == "cpu" || name.ends_with(".0")) check(device, name, one);
}

}  // namespace

TEST_CASE("quantised operators of com.microsoft do what ONNX Runtime does") {
    check_all("onnx_quantized.h5");
}

TEST_CASE("fused operators of com.microsoft and those of ai.onnx.ml do what ONNX Runtime does") {
    check_all("onnx_fused.h5");
}
