// SPDX-License-Identifier: MIT
// Parses OpenCL source text: the parameters of kernels, and other names that a text declares.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace dlprim {

/// The parameters of every `kernel void NAME(...)` in the text, by the kernel's name. Comments and
/// preprocessor lines are skipped. Attributes may appear before or after `void`, and in parameters.
std::map<std::string, std::vector<std::string>, std::less<>> kernel_parameters(
    std::string_view source);

struct KernelParameter {
    std::string type;  ///< words of the type, separated by spaces: "global const float *"
    std::string name;
};

/// The parameters of `kernel void NAME(...)` in order; empty if there is no such kernel.
std::vector<KernelParameter> kernel_signature(std::string_view source, std::string_view kernel);

/// Names that a text declares outside functions: functions, kernels, types, constants.
std::vector<std::string> declared_names(std::string_view source);

/// Whether one of `words` occurs in the text outside comments and preprocessor lines.
bool mentions(std::string_view source, const std::vector<std::string_view>& words);

}  // namespace dlprim
