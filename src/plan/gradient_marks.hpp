// SPDX-License-Identifier: MIT
// Gradient marks: after which step of the backward part the gradient of each parameter is complete,
// so that others can have it while the part still runs.
#pragma once

#include "plan/plan.hpp"

#include <vector>

namespace dlprim {

/// Of a plan that has its graph, blocks and steps. The marks cover the block of gradients without
/// gaps. Empty if there is no such block. Throws Error(unsupported) if a step writes across the end
/// of a gradient, whose range of the block could then leave before it is complete.
std::vector<GradientMark> find_gradient_marks(const Plan& plan);

}  // namespace dlprim
