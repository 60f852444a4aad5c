// SPDX-License-Identifier: MIT
// ArgReduce: x -> the largest or smallest element of each line along a dimension, or of all
// elements, and its position in that line (int64). Of equal elements the first counts, and a NaN is
// more extreme than every number, as in PyTorch's argmax and max. Any type but the narrow ones.
#pragma once

#include "graph/operator.hpp"

#include <memory>

namespace dlprim::arg_reduce {

std::unique_ptr<Operator> make_operator();

}  // namespace dlprim::arg_reduce
