// SPDX-License-Identifier: MIT
// A generated kernel as a whole: functions, signature, body.
#pragma once

#include "engine/pointwise/emit.hpp"
#include "engine/pointwise/kernel_numbers.hpp"
#include "engine/pointwise/kernels.hpp"

#include <string>

namespace dlprim::pointwise {

/// What a kernel is put together from. All but the texts belongs to the caller.
struct KernelText {
    const Job& job;
    const Emitter& emit;           ///< with what the body needs of functions and numbers
    const KernelNumbers& numbers;  ///< the parameters behind the tensors; the emitter's follow
    bool partial;                  ///< reductions go to the workspace (kernels.hpp)
    std::string attributes;        ///< of the kernel, with a blank behind, or nothing
    std::string constants;         ///< lines before the body
    std::string body;
};

/// Sets the source and the numbers of `result`.
void assemble(Generated& result, const KernelText& kernel);

}  // namespace dlprim::pointwise
