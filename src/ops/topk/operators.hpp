// SPDX-License-Identifier: MIT
// TopK: x -> the k largest or smallest elements of each line along a dimension, in order, and their
// positions (int64). Of equal elements the one in front comes first; a NaN is larger than all
// numbers. Sort: all elements of each line in that way. Its gradient is a Scatter.
#pragma once

#include "graph/operator.hpp"

#include <memory>

namespace dlprim::topk {

std::unique_ptr<Operator> make_topk();
std::unique_ptr<Operator> make_sort();

}  // namespace dlprim::topk
