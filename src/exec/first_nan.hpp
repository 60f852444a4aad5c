// SPDX-License-Identifier: MIT
// first_nan_step(): where the first number that is not finite comes from.
#pragma once

#include "exec/executor.hpp"

namespace dlprim {

/// Runs the forward part again, step by step, and returns the first step whose result is not
/// finite, or null. States are as before afterwards. Results of type double are not looked at.
const Step* first_nan_step(Executor& executor);

}  // namespace dlprim
