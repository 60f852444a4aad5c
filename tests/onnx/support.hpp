// SPDX-License-Identifier: MIT
// What the tests of ONNX models share: running a model on the host, and the words of an error.
#pragma once

#include "formats/onnx/model.hpp"
#include "onnx/model_bytes.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/folder.hpp"

#include <dlprim/dlprim.hpp>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

namespace onnx_test {

namespace fs = std::filesystem;
using namespace onnx_bytes;
using dlprim::testing::Folder;
using Values = std::vector<float>;

/// A size whose elements no memory holds.
constexpr std::int64_t huge = std::int64_t{1} << 40;

/// Whether there is nothing to test; the test's entry then counts as skipped.
inline bool is_absent() {
    if (dlprim::onnx::can_read_models()) return false;
    std::puts("this build reads no ONNX models");
    return true;
}

/// What becomes of the file's bytes: the message, or "no error". It is checked to be one line that
/// begins with the file.
inline std::string error_of(const std::string& bytes, dlprim::ErrorKind kind,
                            const dlprim::NetOptions& options = {}) {
    const Folder folder;
    const std::string path = folder.write("model.onnx", bytes);
    try {
        dlprim::Net::from_onnx_file(dlprim::Context("cpu"), path, options);
    } catch (const dlprim::Error& error) {
        const std::string text = error.what();
        CHECK(text.rfind("'" + path + "'", 0) == 0);
        CHECK(text.find('\n') == std::string::npos);
        CHECK(error.kind() == kind);
        return text;
    }
    return "no error";
}

inline bool has(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

inline dlprim::Net open(const Model& model, const dlprim::NetOptions& options = {}) {
    const Folder folder;
    return dlprim::Net::from_onnx_file(dlprim::Context("cpu"),
                                       folder.write("model.onnx", model.str()), options);
}

/// The output "y" for these inputs, all of them floats.
inline Values run(dlprim::Net& net, const std::map<std::string, Values>& inputs) {
    for (const auto& [name, values] : inputs)
        net.set_input(name, values.data(), values.size() * sizeof(float));
    net.forward();
    dlprim::Tensor y = net.output("y");
    Values result(static_cast<std::size_t>(y.shape().numel()));
    y.copy_to_host(result.data(), result.size() * sizeof(float));
    return result;
}
inline Values run(const Model& model, const std::map<std::string, Values>& inputs) {
    dlprim::Net net = open(model);
    return run(net, inputs);
}

/// The types of the network's operators, in order: "Convolution2D Activation".
inline std::string types(const dlprim::Net& net) {
    std::string all;
    for (const auto& op : dlprim::describe(net).operators)
        all += (all.empty() ? "" : " ") + op.type;
    return all;
}

}  // namespace onnx_test
