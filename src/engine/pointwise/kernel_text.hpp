// SPDX-License-Identifier: MIT
// A whole generated kernel: functions, signature, body.
#pragma once

#include "engine/pointwise/emit.hpp"
#include "engine/pointwise/kernel_numbers.hpp"
#include "engine/pointwise/kernels.hpp"

#include <string>

namespace dlprim::pointwise {

/// The parts of a kernel. Everything except the texts belongs to the caller.
struct KernelText {
    const Job& job;
    const Emitter& emit;           ///< has the functions and numbers that the body needs
    const KernelNumbers& numbers;  ///< parameters after the tensors; the emitter's follow
    Results results;               ///< where reductions go
    std::string attributes;        ///< of the kernel, with a trailing blank, or empty
    std::string constants;         ///< lines before the body
    std::string body;
};

/// Sets the source and the numbers of `result`.
void assemble(Generated& result, const KernelText& kernel);

}  // namespace dlprim::pointwise
