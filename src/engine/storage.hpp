// SPDX-License-Identifier: MIT
// Storage in 16 bits: shared by engines that compute in float and read and write float, half or
// bfloat16 (kernels/common/storage.clh).
#pragma once

#include "engine/problem.hpp"

#include <initializer_list>
#include <string>
#include <utility>

namespace dlprim {

struct Verdict;

/// f32, f16 and bf16: the types in which activations and their gradients may be stored.
bool is_activation_type(DType dtype);

/// Yes if every operand is float, except that some may also be f16 or bf16, in any mix: the inputs
/// with these numbers, and with `output` the first output and the operands of the epilogue.
Verdict storage_verdict(const Problem& problem, std::initializer_list<int> inputs, bool output);

/// Compiler options of a kernel that includes common/storage.clh: the storage types of A, B, C and
/// R. Empty if all are float.
std::string storage_options(std::initializer_list<std::pair<char, DType>> tensors);

}  // namespace dlprim
