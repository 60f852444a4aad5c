// SPDX-License-Identifier: MIT
// GridSample: samples images at places that a second tensor gives. The gradients of both are
// operators of their own.
#pragma once

#include "graph/operator.hpp"
#include "ops/grid_sample/options.hpp"

#include <memory>

namespace dlprim::grid_sample {

std::unique_ptr<Operator> make_forward();
std::unique_ptr<Operator> make_backward_data();
std::unique_ptr<Operator> make_backward_grid();

void oracle(OracleCall& call);
void oracle_backward(OracleBackwardCall& call);

}  // namespace dlprim::grid_sample
