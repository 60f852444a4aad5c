// SPDX-License-Identifier: MIT
// Compares the oracles with PyTorch in float64, by the files of tests/golden, which make_golden.py
// makes.
#include "check/compare.hpp"
#include "support/cases.hpp"

#include <dlprim/tensor_file.hpp>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <map>

using namespace dlprim;
using namespace dlprim::testing;

namespace {

constexpr double tolerance = 1e-10;
int failures = 0;

void fail(const Case& one, const std::string& what) {
    std::cout << "FAILED " << one.title() << ": " << what << '\n';
    ++failures;
}

/// The tensors of one case in a file, by their short names.
class Golden {
  public:
    Golden(const std::map<std::string, HostTensor>& file, const std::string& group)
        : file_(file), group_(group) {}
    bool has(const std::string& name) const { return file_.count(group_ + "/" + name) > 0; }
    HostArray get(const std::string& name, DType dtype = DType::f32) const {
        const HostTensor& tensor = file_.at(group_ + "/" + name);
        HostArray array{tensor.shape,
                        std::vector<double>(static_cast<std::size_t>(tensor.shape.numel())), dtype};
        convert(tensor.data.data(), tensor.dtype, array.data.data(), DType::f64, array.data.size());
        return array;
    }

  private:
    const std::map<std::string, HostTensor>& file_;
    std::string group_;
};

void compare(const Case& one, const std::string& what, const HostArray& found,
             const HostArray& wanted) {
    const bool scalars = found.shape.numel() == 1 && wanted.shape.numel() == 1;
    if (found.shape != wanted.shape && !scalars)
        return fail(one,
                    what + " has shape " + found.shape.str() + ", PyTorch's " + wanted.shape.str());
    // For float16 and bfloat16 outputs, the oracle holds values that the type can represent.
    const double error = relative_error(found.data, wanted.data, 1e-12);
    if (error > tolerance) fail(one, what + " is off by " + std::to_string(error * 1e10) + "e-10");
}

void check(const Case& one, const Golden& golden) {
    const Operator& op = OperatorRegistry::instance().get(one.type);
    const CaseData shapes = make_case_data(one, 1);
    std::vector<HostArray> operands = shapes.inputs;
    operands.insert(operands.end(), shapes.params.begin(), shapes.params.end());
    for (std::size_t i = 0; i < operands.size(); ++i) {
        const HostArray stored = golden.get("operand" + std::to_string(i), operands[i].dtype);
        if (stored.shape != operands[i].shape)
            return fail(one, "has changed: run tests/golden/make_golden.py");
        operands[i] = stored;
    }
    std::vector<TensorSpec> specs;
    for (const HostArray& operand : operands) specs.push_back({operand.shape, operand.dtype});
    const auto made = op.infer(shapes.attrs, specs);
    OracleCall call{
        shapes.attrs, one.training, operands, std::vector<HostArray>(made.size()), {}, 1, 0};
    op.oracle(call);
    for (std::size_t i = 0; i < made.size(); ++i)
        compare(one, "output " + std::to_string(i), call.outputs[i],
                golden.get("output" + std::to_string(i)));
    for (const auto& [index, contents] : call.updated)
        compare(one, "updated " + std::to_string(index), contents,
                golden.get("updated" + std::to_string(index)));
    if (!golden.has("output_gradient0")) return;
    std::vector<HostArray> seeds;
    for (std::size_t i = 0; i < made.size(); ++i) {
        seeds.push_back(golden.get("output_gradient" + std::to_string(i), made[i].dtype));
        seeds.back().shape = made[i].shape;
    }
    OracleBackwardCall back{shapes.attrs,
                            one.training,
                            operands,
                            call.outputs,
                            seeds,
                            std::vector<HostArray>(operands.size()),
                            1,
                            0};
    op.oracle_backward(back);
    for (std::size_t i = 0; i < operands.size(); ++i)
        if (golden.has("gradient" + std::to_string(i)))
            compare(one, "gradient " + std::to_string(i), back.input_gradients[i],
                    golden.get("gradient" + std::to_string(i)));
}

}  // namespace

int main() {
    // There are no golden data for Parameter and Constant, which return their own contents, and for
    // Dropout, whose random numbers are this library's.
    const std::vector<std::string> without = {"Parameter", "Constant", "Dropout"};
    std::map<std::string, std::map<std::string, HostTensor>> files;
    for (const auto& entry : std::filesystem::directory_iterator(DLPRIM_GOLDEN))
        if (entry.path().extension() == ".h5")
            files[entry.path().stem().string() + ".json"] = load_tensors(entry.path().string());
    std::map<std::string, int> counts;
    for (const Case& one : load_cases(DLPRIM_CASES)) {
        const Golden golden(files[one.file], one.type + "." + one.name);
        if (!golden.has("output0")) {
            if (one.golden) fail(one, "has no golden data: run tests/golden/make_golden.py");
            continue;
        }
        ++counts[OperatorRegistry::instance().type_of(one.type)];
        try {
            check(one, golden);
        } catch (const std::exception& error) {
            fail(one, error.what());
        }
    }
    int total = 0;
    for (const std::string& type : OperatorRegistry::instance().types()) {
        total += counts[type];
        if (counts[type] > 0 || std::find(without.begin(), without.end(), type) != without.end())
            continue;
        std::cout << "FAILED " << type << " has no golden data\n";
        ++failures;
    }
    std::cout << total << " cases against PyTorch, " << failures << " failures\n";
    return failures == 0 ? 0 : 1;
}
