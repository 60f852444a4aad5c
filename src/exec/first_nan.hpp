// SPDX-License-Identifier: MIT
// first_nan_step(): finds the step that makes the first number that is not finite.
#pragma once

#include "exec/executor.hpp"

namespace dlprim {

/// Runs the forward part again, step by step. Returns the first step whose result is not finite, or
/// null. Afterwards the states are as before. Results of type double are not checked.
const Step* first_nan_step(Executor& executor);

}  // namespace dlprim
