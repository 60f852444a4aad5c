// SPDX-License-Identifier: MIT
// What tests share that run an engine outside a plan: the places of operands, and how far results
// may be from the oracle's.
#pragma once

#include "check/compare.hpp"
#include "engine/engine.hpp"
#include "runtime/access.hpp"

#include <dlprim/tensor.hpp>

namespace dlprim::testing {

/// The tensor's memory, in the form that launches need. The tensor keeps it alive.
inline BufferRef ref(const Tensor& tensor) {
    return {Access::buffer(tensor).get(), tensor.byte_offset()};
}

/// The tolerance for a problem with operands of these types. It leaves no room for the problem's
/// precision, since 6x6 tiles, which tf32 allows, must be as exact as float.
inline double tolerance(Problem problem) {
    problem.precision = Precision::fp32;
    return allowed_engine_error(problem, DType::f32);
}

}  // namespace dlprim::testing
