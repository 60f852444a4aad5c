// SPDX-License-Identifier: MIT
// Runs a row without reductions on the arguments of a boxed call.
#pragma once

#include "ops/arguments.hpp"

namespace dlprim_torch {

/// Computes the row's expression, and puts the results on the stack in place of the arguments.
void run_elementwise(const Row& row, Arguments& arguments);

}  // namespace dlprim_torch
