// SPDX-License-Identifier: MIT
// GridSample: samples images at places that a second tensor gives. The gradients of both are
// operators of their own.
#pragma once

#include "graph/operator.hpp"
#include "ops/grid_sample/options.hpp"

namespace dlprim::grid_sample {

void oracle(OracleCall& call);
void oracle_backward(OracleBackwardCall& call);

}  // namespace dlprim::grid_sample
