// SPDX-License-Identifier: MIT
// What tests share that run an engine outside a plan: the places of operands, and how far results
// may be from the oracle's.
#pragma once

#include "engine/engine.hpp"
#include "runtime/access.hpp"

#include <dlprim/tensor.hpp>

#include <algorithm>

namespace dlprim::testing {

/// The tensor's memory, in the form that launches need. The tensor keeps it alive.
inline BufferRef ref(const Tensor& tensor) {
    return {Access::buffer(tensor).get(), tensor.byte_offset()};
}

/// Relative to the L2 norm: the error of float sums, or the rounding of a matrix or weights and of
/// values that are added and stored, each by up to half a unit in the last place of the problem's
/// types.
inline double tolerance(const Problem& problem) {
    double most = 1e-5;
    for (const auto* operands : {&problem.inputs, &problem.outputs})
        for (const Operand& operand : *operands) {
            if (operand.dtype == DType::f16) most = std::max(most, 3 * 0x1p-11);
            if (operand.dtype == DType::bf16) most = std::max(most, 3 * 0x1p-8);
        }
    return most;
}

}  // namespace dlprim::testing
