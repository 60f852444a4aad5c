// SPDX-License-Identifier: MIT
// Nonzero: x -> the positions of the elements that are not 0, in row-major order, as rows of `size`
// (int64), and how many there are (int64 [1]). Rows behind that number hold `fill`. It becomes a
// Scan, which counts, and NonzeroRows, which finds the element at which a count is reached.
#pragma once

#include "graph/operator.hpp"

#include <memory>

namespace dlprim::nonzero {

std::unique_ptr<Operator> make_nonzero();
std::unique_ptr<Operator> make_rows();

}  // namespace dlprim::nonzero
