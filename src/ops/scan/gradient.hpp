// SPDX-License-Identifier: MIT
// The gradients of Scan, as nodes: scans in the other direction, and of maxima a Scatter.
#pragma once

#include "graph/operator.hpp"

namespace dlprim::scan {

void add_gradient(GradientContext& context);

}  // namespace dlprim::scan
