// SPDX-License-Identifier: MIT
// Running one case; see onnx_case.hpp.
#include "onnx_case.hpp"

#include "onnx_compare.hpp"

#include <dlprim/onnx.hpp>
#include <dlprim/onnx_value.hpp>

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <set>

namespace dlprim::tools {

namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse(ErrorKind kind, const std::string& text) {
    throw Error(kind, text);
}

/// Built by appending, because GCC 12 warns falsely of overlap in "text" + string.
std::string quoted(const fs::path& path) {
    std::string text("'");
    text += path.string();
    text += '\'';
    return text;
}

std::vector<fs::path> data_sets(const fs::path& folder) {
    std::vector<fs::path> sets;
    for (const auto& entry : fs::directory_iterator(folder))
        if (entry.path().filename().string().starts_with("test_data_set_"))
            sets.push_back(entry.path());
    std::sort(sets.begin(), sets.end());
    if (sets.empty())
        refuse(ErrorKind::not_found, quoted(folder) + " has no folder test_data_set_0");
    return sets;
}

/// The path of "input_3.pb"; how many there are is how many the folder holds.
fs::path file_of(const fs::path& set, const std::string& what, std::size_t i) {
    return set / (what + "_" + std::to_string(i) + ".pb");
}

std::size_t count_files(const fs::path& set, const std::string& what) {
    std::size_t count = 0;
    for (const auto& entry : fs::directory_iterator(set)) {
        const std::string name = entry.path().filename().string();
        count += name.starts_with(what + "_") && name.ends_with(".pb");
    }
    return count;
}

void check_count(const fs::path& set, const std::string& what, std::size_t wanted) {
    const std::size_t count = count_files(set, what);
    if (count != wanted)
        refuse(ErrorKind::not_found, quoted(set) + " holds " + std::to_string(count) + " files " +
                                         what + "_*.pb, the model has " + std::to_string(wanted) +
                                         " " + what + "s");
}

using Values = std::map<std::string, ONNXValue>;

const HostTensor& tensor_of(const Values& inputs, const std::string& name) {
    const ONNXValue& value = inputs.at(name);
    if (value.kind() != ONNXValue::Kind::tensor)
        refuse(ErrorKind::unsupported,
               "input '" + name + "' is " + value.str() + ", which is not supported");
    return value.tensor();
}

/// Whether an operator may need the input's values before the network runs: sizes, axes, pads.
bool may_give_sizes(const ONNXValue& value) {
    constexpr std::int64_t most_sizes = 64;
    return value.kind() == ONNXValue::Kind::tensor && value.tensor().shape.rank() <= 1 &&
           value.tensor().shape.numel() <= most_sizes;
}

Net open(const Context& context, const ONNXModel& model, const Values& inputs) {
    NetOptions options;
    for (const ONNXInput& input : model.inputs())
        options.input_shapes[input.name] = tensor_of(inputs, input.name).shape;
    Net net(context, options);
    net.load_model(model);
    return net;
}

/// A net of the model. Inputs whose values it needs beforehand are fixed at them.
Net open_with_known(const Context& context, const ONNXModel& model, const Values& inputs) {
    try {
        return open(context, model, inputs);
    } catch (const Error& error) {
        if (std::string(error.what()).find("known only while") == std::string::npos) throw;
    }
    std::map<std::string, HostTensor> known;
    for (const auto& [name, value] : inputs)
        if (may_give_sizes(value)) known.emplace(name, value.tensor());
    return open(context, model.fixed(known), inputs);
}

std::vector<ONNXValue> run_model(const Context& context, const ONNXModel& model,
                                 const Values& inputs) {
    Net net = open_with_known(context, model, inputs);
    for (const std::string& name : net.input_names()) {
        const HostTensor& value = inputs.at(name).tensor();
        net.set_input(name, value.data.data(), value.data.size());
    }
    net.forward();
    std::vector<ONNXValue> outputs;
    for (const std::string& name : model.output_names()) {
        const Tensor output = net.output(name);
        HostTensor host{output.shape(), output.dtype(), std::vector<std::byte>(output.bytes())};
        output.copy_to_host(host.data.data(), host.data.size());
        outputs.emplace_back(std::move(host));
    }
    return outputs;
}

void run_data_set(const Context& context, const ONNXModel& model, const fs::path& set,
                  CaseResult& result) {
    const std::vector<ONNXInput> declared = model.inputs();
    const std::vector<ONNXInput> expected = model.outputs();
    check_count(set, "input", declared.size());
    check_count(set, "output", expected.size());
    Values inputs;
    for (std::size_t i = 0; i < declared.size(); ++i)
        inputs[declared[i].name] =
            read_onnx_value(file_of(set, "input", i).string(), declared[i].dtype);
    const std::vector<ONNXValue> outputs = run_model(context, model, inputs);
    for (std::size_t i = 0; i < expected.size(); ++i) {
        const std::string wrong = difference(
            outputs[i], read_onnx_value(file_of(set, "output", i).string(), expected[i].dtype));
        if (wrong.empty()) continue;
        result.reason = "output '" + expected[i].name + "': " + wrong;
        return;
    }
    result.state = CaseState::passed;
}

void run_all(const Context& context, const OnnxCase& one, CaseResult& result) {
    const ONNXModel model((one.folder / "model.onnx").string());
    const std::vector<std::string> types = model.node_types();
    result.nodes = static_cast<int>(types.size());
    result.type = types.size() == 1 ? types[0] : "several nodes";
    result.opset = model.opset();
    for (const fs::path& set : data_sets(one.folder)) {
        result.state = CaseState::failed;
        run_data_set(context, model, set, result);
        if (result.state != CaseState::passed) return;
    }
}

/// The message with paths below the case's folder, and without that of the model.
std::string without_folder(std::string text, const OnnxCase& one) {
    const std::string folder = one.folder.string() + "/";
    for (std::size_t at = 0; (at = text.find(folder, at)) != std::string::npos;)
        text.erase(at, folder.size());
    const std::string model = "'model.onnx': ";
    if (text.starts_with(model)) text.erase(0, model.size());
    return text;
}

}  // namespace

std::vector<OnnxCase> find_cases(const fs::path& root) {
    std::vector<OnnxCase> cases;
    std::error_code code;
    for (fs::recursive_directory_iterator at(root, code), end; !code && at != end;
         at.increment(code))
        if (at->path().filename() == "model.onnx") {
            const fs::path folder = at->path().parent_path();
            std::string name = folder.lexically_relative(root).string();
            if (name == ".") name = fs::absolute(folder).filename().string();
            cases.push_back({name, folder});
        }
    if (code)
        refuse(ErrorKind::not_found,
               quoted(root) + " cannot be searched for cases: " + code.message());
    if (cases.empty())
        refuse(ErrorKind::not_found,
               quoted(root) + " holds no case: a case is a folder with a model.onnx");
    std::sort(cases.begin(), cases.end(),
              [](const OnnxCase& a, const OnnxCase& b) { return a.name < b.name; });
    return cases;
}

CaseResult run_case(const Context& context, const OnnxCase& one) {
    const auto start = std::chrono::steady_clock::now();
    CaseResult result;
    try {
        run_all(context, one, result);
    } catch (const Error& error) {
        const bool unsupported = error.kind() == ErrorKind::unsupported;
        result.state = unsupported ? CaseState::unsupported : CaseState::failed;
        result.reason = without_folder(error.what(), one);
    } catch (const std::exception& error) {
        result.state = CaseState::failed;
        result.reason = without_folder(error.what(), one);
    }
    result.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return result;
}

}  // namespace dlprim::tools
