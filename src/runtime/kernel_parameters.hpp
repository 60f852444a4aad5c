// SPDX-License-Identifier: MIT
// Kernels' parameters, and what else a text declares, read from OpenCL source text.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace dlprim {

/// The parameters of every `kernel void NAME(...)` in the text, by the kernel's name. Comments and
/// preprocessor lines are skipped; attributes may stand before or after `void`, and in parameters.
std::map<std::string, std::vector<std::string>, std::less<>> kernel_parameters(
    std::string_view source);

struct KernelParameter {
    std::string type;  ///< its words with spaces between: "global const float *"
    std::string name;
};

/// The parameters of `kernel void NAME(...)`, in order; empty where there is no such kernel.
std::vector<KernelParameter> kernel_signature(std::string_view source, std::string_view kernel);

/// Names that a text declares outside of any function: functions, kernels, types, constants.
std::vector<std::string> declared_names(std::string_view source);

/// Whether one of `words` stands in the text, comments and preprocessor lines aside.
bool mentions(std::string_view source, const std::vector<std::string_view>& words);

}  // namespace dlprim
