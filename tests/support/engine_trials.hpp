// SPDX-License-Identifier: MIT
// What tests that run an engine apart from a plan share: where its operands lie, and how far its
// results may be from the oracle's.
#pragma once

#include "engine/engine.hpp"
#include "runtime/access.hpp"

#include <dlprim/tensor.hpp>

#include <algorithm>

namespace dlprim::testing {

/// The tensor's memory, as launches take it. The tensor keeps it.
inline BufferRef ref(const Tensor& tensor) {
    return {Access::buffer(tensor).get(), tensor.byte_offset()};
}

/// Of the L2 norm: float sums; or the rounding of a matrix or weights, and of what is added and
/// stored, each by up to half a unit of the last place of what the problem stores.
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
