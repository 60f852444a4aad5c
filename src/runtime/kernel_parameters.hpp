// SPDX-License-Identifier: MIT
// Names of kernels' parameters, read from OpenCL source text.
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

}  // namespace dlprim
