// SPDX-License-Identifier: MIT
// The gradients of Scatter where updates are multiplied or averaged, or where the largest or the
// smallest remains, as nodes. Values are those of PyTorch's scatter_reduce.
#pragma once

#include "graph/operator.hpp"

namespace dlprim::scatter {

/// Of max and min: an element's gradient is divided evenly among all that are equal to it.
void add_extreme_gradient(GradientContext& context, ValueId dy);
/// Of mul: each factor's gradient is the product of the others, also where factors are zero.
void add_product_gradient(GradientContext& context, ValueId dy);

/// Of mean: an element's gradient is divided among all that it is the mean of.
void add_mean_gradient(GradientContext& context, ValueId dy);

}  // namespace dlprim::scatter
