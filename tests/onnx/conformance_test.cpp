// SPDX-License-Identifier: MIT
// The runner of ONNX's test data (dlprim_onnx_conformance): how values are compared, what becomes
// of cases that are wrong, damaged, not supported, crash or never end.
#include "onnx/support.hpp"

#include "child_process.hpp"
#include "onnx_compare.hpp"

#include <sys/wait.h>
#include <cmath>
#include <csignal>
#include <limits>
#include <thread>

using namespace onnx_test;
using dlprim::DType;
using dlprim::ONNXValue;
using dlprim::tools::difference;
using dlprim::tools::LineProcess;

namespace {

ONNXValue value_of(const std::vector<double>& numbers, DType dtype = DType::f32) {
    dlprim::HostTensor tensor{dlprim::Shape{static_cast<std::int64_t>(numbers.size())}, dtype, {}};
    tensor.data.resize(numbers.size() * dlprim::size_of(dtype));
    dlprim::convert(numbers.data(), DType::f64, tensor.data.data(), dtype, numbers.size());
    return tensor;
}

/// A folder of cases, and what the runner says of it.
struct Cases {
    Folder folder;

    void write(const std::string& name, const std::string& bytes) const {
        fs::create_directories((folder.path() / name).parent_path());
        folder.write(name, bytes);
    }
    /// A case with one data set: y = relu(x).
    void relu(const std::string& name, const std::string& expected,
              const std::string& type = "Relu") const {
        Model model{.nodes = {node(type, {"x"}, {"y"})},
                    .inputs = {onnx_bytes::value("x", {2})},
                    .outputs = {onnx_bytes::value("y", {2})}};
        write(name + "/model.onnx", model.str());
        write(name + "/test_data_set_0/input_0.pb", floats("x", {2}, {-1, 2}));
        if (!expected.empty()) write(name + "/test_data_set_0/output_0.pb", expected);
    }
    /// What the command prints, its errors included; `code` becomes its exit code.
    std::string run(int& code, const std::string& options = {}) const {
        const std::string command = std::string("'" CONFORMANCE_RUNNER "' '") +
                                    folder.path().string() + "' -d cpu " + options + " 2>&1";
        FILE* const pipe = popen(command.c_str(), "r");
        REQUIRE(pipe != nullptr);
        std::string text;
        char piece[4096];
        while (const std::size_t count = fread(piece, 1, sizeof(piece), pipe))
            text.append(piece, count);
        code = WEXITSTATUS(pclose(pipe));
        return text;
    }
};

}  // namespace

TEST_CASE("numbers agree within ONNX's tolerances") {
    CHECK(difference(value_of({1, 2}), value_of({1.0009, 2})).empty());
    CHECK(has(difference(value_of({1, 2}), value_of({1.0011, 2})),
              "1 of 2 elements differ, the first at 0 is 1, expected 1.0011"));
    CHECK(difference(value_of({9e-8}), value_of({0})).empty());
    CHECK(has(difference(value_of({2e-7}), value_of({0})), "differ"));
    CHECK(difference(value_of({1}, DType::bf16), value_of({1.015625}, DType::bf16)).empty());
    CHECK(has(difference(value_of({1}, DType::bf16), value_of({1.03125}, DType::bf16)), "differ"));
    const double nan = std::nan(""), infinity = std::numeric_limits<double>::infinity();
    CHECK(difference(value_of({nan, infinity}), value_of({nan, infinity})).empty());
    CHECK(has(difference(value_of({nan}), value_of({1})), "differ"));
    CHECK(has(difference(value_of({infinity}), value_of({-infinity})), "differ"));
    CHECK(has(difference(value_of({1e30}), value_of({infinity})), "differ"));
}

TEST_CASE("values of other kinds, types, shapes and elements differ") {
    CHECK(has(difference(value_of({1}), value_of({1}, DType::i64)),
              "is float [1], expected int64 [1]"));
    CHECK(has(difference(value_of({1}), value_of({1, 1})), "is float [1], expected float [2]"));
    CHECK(has(difference({}, value_of({1})), "is none, expected float [1]"));
    CHECK(difference({}, {}).empty());
    const ONNXValue two(ONNXValue::Sequence{value_of({1}), value_of({2})});
    const ONNXValue other(ONNXValue::Sequence{value_of({1}), value_of({3})});
    CHECK(difference(two, two).empty());
    CHECK(has(difference(two, other), "element 1: 1 of 1 elements differ"));
    CHECK(has(difference(two, ONNXValue(ONNXValue::Sequence{})), "expected a sequence of 0"));
    const ONNXValue text(dlprim::ONNXStrings{dlprim::Shape{2}, {"a", "b"}});
    CHECK(difference(text, text).empty());
    CHECK(has(difference(text, dlprim::ONNXStrings{dlprim::Shape{2}, {"a", "c"}}),
              "element 1 is 'b', expected 'c'"));
}

TEST_CASE("work that crashes or never ends is the end of its process only") {
    LineProcess process(
        [](int from, int to) {
            dlprim::tools::answer_lines(from, to, [](const std::string& question) {
                if (question == "crash") std::raise(SIGKILL);
                if (question == "end") _exit(3);
                if (question == "sleep") std::this_thread::sleep_for(std::chrono::hours(1));
                return question + "!";
            });
        },
        "its process");
    CHECK(process.ask("one", 1).text == "one!");
    CHECK(has(process.ask("crash", 1).text, "ended by signal Killed"));
    CHECK(process.ask("two", 1).text == "two!");
    CHECK(has(process.ask("end", 1).text, "exit code 3"));
    const LineProcess::Answer late = process.ask("sleep", 1);
    CHECK(!late.given);
    CHECK(late.late);
    CHECK(has(late.text, "its process took longer than 1 seconds"));
    CHECK(process.ask("three", 1).text == "three!");
}

TEST_CASE("the runner says of every case what became of it") {
    if (is_absent()) return;
    const Cases cases;
    cases.relu("right", floats("y", {2}, {0, 2}));
    cases.relu("wrong_value", floats("y", {2}, {0, 3}));
    cases.relu("wrong_type", integers("y", {0, 2}));
    cases.relu("wrong_shape", floats("y", {1, 2}, {0, 2}));
    cases.relu("no_output", "");
    cases.relu("unknown", floats("y", {2}, {0, 2}), "NoSuchOperator");
    cases.relu("damaged_value", "ha");
    cases.write("damaged_model/model.onnx", "ha");
    int code = 0;
    const std::string text = cases.run(code, "--json '" + cases.folder.file("all.json") + "'");
    INFO(text);
    CHECK(code == 1);
    CHECK(has(text, "1 passed, 6 failed, 1 skipped\n"));
    CHECK(has(text,
              "output 'y': 1 of 2 elements differ, the first at 1 is 2, expected 3 (wrong_value)"));
    CHECK(has(text, "is float [2], expected int64 [2] (wrong_type)"));
    CHECK(has(text, "is float [2], expected float [1, 2] (wrong_shape)"));
    CHECK(has(text, "holds 0 files output_*.pb, the model has 1 outputs (no_output)"));
    CHECK(has(text, "unsupported: [NoSuchOperator 'y', opset 17]"));
    CHECK(has(text, "output_0.pb' holds no tensor of ONNX's test data (damaged_value)"));
    CHECK(has(text, "(damaged_model)"));
    CHECK(has(text, "6 of 8 cases failed"));
    std::ifstream file(cases.folder.file("all.json"));
    const std::string json{std::istreambuf_iterator<char>(file), {}};
    CHECK(has(json, "\"name\": \"wrong_value\""));
    const std::string right = cases.run(code, "--filter '^right|unknown'");
    INFO(right);
    CHECK(code == 0);
    CHECK(has(right, "1 passed, 0 failed, 1 skipped\n"));
    CHECK(has(cases.run(code, "--filter nothing"), "no case in"));
    CHECK(code == 1);
}

TEST_CASE("a case that takes too long fails, and the others run") {
    if (is_absent()) return;
    const Cases cases;
    cases.relu("b", floats("y", {2}, {0, 2}));
    Model model;  // 10^13 multiplications
    model.nodes = {node("Expand", {"x", "sizes"}, {"a0"})};
    for (int i = 0; i < 100; ++i)
        model.nodes.push_back(node("MatMul", {"a" + std::to_string(i), "a" + std::to_string(i)},
                                   {"a" + std::to_string(i + 1)}));
    model.nodes.push_back(node("ReduceMax", {"a100"}, {"y"}));
    model.inputs = {onnx_bytes::value("x", {1, 1})};
    model.outputs = {onnx_bytes::value("y", {1, 1})};
    model.initializers = {integers("sizes", {4096, 4096})};
    cases.write("a/model.onnx", model.str());
    cases.write("a/test_data_set_0/input_0.pb", floats("x", {1, 1}, {1}));
    cases.write("a/test_data_set_0/output_0.pb", floats("y", {1, 1}, {1}));
    int code = 0;
    const std::string text = cases.run(code, "--seconds 2");
    INFO(text);
    CHECK(has(text, "failed: its process took longer than 2 seconds (a)"));
    CHECK(has(text, "1 passed, 1 failed, 0 skipped\n"));
}
