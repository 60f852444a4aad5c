// SPDX-License-Identifier: MIT
// PoolingND: the maximum or mean of windows of images of one to three dimensions. AdaptivePooling:
// the same of windows that divide images into a given number of parts. Their gradients are
// operators, too.
#pragma once

#include "graph/operator.hpp"

#include <memory>

namespace dlprim::pooling_nd {

std::unique_ptr<Operator> make_pooling();
std::unique_ptr<Operator> make_adaptive();
std::unique_ptr<Operator> make_backward(bool adaptive);

void oracle(OracleCall& call, bool adaptive);
void oracle_backward(OracleBackwardCall& call, bool adaptive);

}  // namespace dlprim::pooling_nd
