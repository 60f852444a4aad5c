// SPDX-License-Identifier: MIT
// Running one case; see onnx_case.hpp.
#include "onnx_case.hpp"

#include "onnx_compare.hpp"

#include <dlprim/onnx.hpp>
#include <dlprim/onnx_session.hpp>
#include <dlprim/onnx_value.hpp>

#include <algorithm>
#include <chrono>

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

/// The value in a file, for an input or output that is declared so. numpy has no bfloat16, which
/// old test data holds as its bits in uint16.
ONNXValue read_declared(const fs::path& path, const ONNXInput& declared) {
    ONNXValue value = read_onnx_value(path.string(), declared.dtype);
    if (declared.dtype != "bfloat16" || value.kind() != ONNXValue::Kind::tensor ||
        value.tensor().dtype != DType::u16)
        return value;
    HostTensor bits = value.tensor();
    bits.dtype = DType::bf16;
    return bits;
}

void run_data_set(ONNXSession& session, const ONNXModel& model, const fs::path& set,
                  CaseResult& result) {
    const std::vector<ONNXInput> declared = model.inputs();
    const std::vector<ONNXInput> expected = model.outputs();
    check_count(set, "input", declared.size());
    check_count(set, "output", expected.size());
    ONNXSession::Values inputs;
    for (std::size_t i = 0; i < declared.size(); ++i)
        inputs[declared[i].name] = read_declared(file_of(set, "input", i), declared[i]);
    const ONNXSession::Values outputs = session.run(inputs);
    result.host_nodes = static_cast<int>(session.host_nodes());
    for (std::size_t i = 0; i < expected.size(); ++i) {
        const std::string wrong = difference(outputs.at(expected[i].name),
                                             read_declared(file_of(set, "output", i), expected[i]));
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
    ONNXSession session(context, model);
    for (const fs::path& set : data_sets(one.folder)) {
        result.state = CaseState::failed;
        run_data_set(session, model, set, result);
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
