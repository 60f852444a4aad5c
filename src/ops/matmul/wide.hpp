// SPDX-License-Identifier: MIT
// Products of doubles and of integers: what the engines of the host and of OpenCL devices share.
#pragma once

#include "ops/matmul/engine.hpp"

namespace dlprim::matmul {

/// The types other than 16-bit ones and float whose products are computed: f64 and all integers.
bool is_wide_type(DType dtype);

/// Yes if all tensors are of one such type, which the device has, and the epilogue is at most one
/// sum.
Verdict check_wide(const Traits& device, const Problem& problem);

/// The option alpha; an integer for products of integers.
double alpha_of(const Problem& problem);

void add_wide(EngineRegistry& engines, const std::string& op);       ///< wide.cpp
void add_host_wide(EngineRegistry& engines, const std::string& op);  ///< host_wide.cpp

}  // namespace dlprim::matmul
