// SPDX-License-Identifier: MIT
// Checks that PyTorch makes for devices of its own: operands are on one device, and no element that
// is written is the same memory as another one. Nothing waits.
#pragma once

#include "common.hpp"

namespace dlprim_torch {

/// Throws PyTorch's "unsupported operation" where several elements of `written` are the same
/// memory.
void check_written(const at::Tensor& written);
/// Whether a tensor is an operand on any device: an undefined one, and a number in a tensor of the
/// CPU without dimensions, which the kernel takes or refuses.
bool is_anywhere(const at::Tensor& tensor);
/// Throws "Expected all tensors to be on the same device" for a boxed call. Lists of indices may be
/// on the CPU.
void check_devices(const c10::OperatorHandle& op, const torch::jit::Stack& stack);

}  // namespace dlprim_torch
