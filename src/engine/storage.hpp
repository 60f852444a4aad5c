// SPDX-License-Identifier: MIT
// Storage in 16 bits: what engines that compute in float, and read and write float, half or
// bfloat16, have in common (kernels/common/storage.clh).
#pragma once

#include "engine/problem.hpp"

#include <initializer_list>
#include <string>
#include <utility>

namespace dlprim {

struct Verdict;

/// f32, f16 and bf16: what activations and their gradients may be stored in.
bool is_activation_type(DType dtype);

/// Yes where every operand is float, but inputs of these numbers, the epilogue's and, with
/// `output`, the first output may be f16 and bf16, too, in any mix. `output` false: the epilogue's
/// stay float as well.
Verdict storage_verdict(const Problem& problem, std::initializer_list<int> inputs, bool output);

/// Compiler options of a kernel that includes common/storage.clh: what A, B, C and R are stored in.
/// Empty where all are float.
std::string storage_options(std::initializer_list<std::pair<char, DType>> tensors);

constexpr const char* storage_source = "common/storage.clh";

}  // namespace dlprim
