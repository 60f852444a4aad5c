// SPDX-License-Identifier: MIT
// Scan: x -> for each element the sum, product, maximum, minimum, or logarithm of the sum of
// exponentials, of the elements of its line up to itself (torch.cumsum, cumprod, cummax, cummin,
// logcumsumexp). Maxima and minima have a second output, their positions (int64): of equal elements
// the last counts, and a NaN is more extreme than every number, as in PyTorch. Integers wrap
// around; sums of floats are compensated.
#pragma once

#include "graph/operator.hpp"

#include <memory>

namespace dlprim::scan {

std::unique_ptr<Operator> make_operator();

}  // namespace dlprim::scan
