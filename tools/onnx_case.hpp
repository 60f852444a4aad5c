// SPDX-License-Identifier: MIT
// A case of ONNX's test data: a folder with a model, inputs and expected outputs.
//
//   model.onnx
//   test_data_set_0/input_0.pb, input_1.pb, ..., output_0.pb, ...
//   test_data_set_1/...
#pragma once

#include <dlprim/context.hpp>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace dlprim::tools {

struct OnnxCase {
    std::string name;  ///< the folder's path below the folder that is searched
    std::filesystem::path folder;
};

/// The folders below `root`, or `root` itself, that hold a model.onnx, by name. Throws
/// Error(not_found) where there are none.
std::vector<OnnxCase> find_cases(const std::filesystem::path& root);

enum class CaseState : std::uint8_t { passed, failed, unsupported };

struct CaseResult {
    CaseState state = CaseState::failed;
    std::string reason;      ///< why it did not pass: a sentence
    std::string type;        ///< of the model's node, or "several nodes"; empty: it cannot be read
    std::int64_t opset = 0;  ///< of ONNX's own operators
    int nodes = 0;           ///< of the model's graph
    int host_nodes = 0;      ///< of these, those whose results were computed on the host
    double seconds = 0;
};

/// Runs all data sets of the case. Throws nothing: what goes wrong is the result.
CaseResult run_case(const Context& context, const OnnxCase& one);

}  // namespace dlprim::tools
