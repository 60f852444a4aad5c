// SPDX-License-Identifier: MIT
// What engines share that make products of floats from halves on matrix units
// (kernels/matrix/halves.clh).
#pragma once

#include "engine/problem.hpp"

namespace dlprim {

/// Products of halves that make one: of upper and lower halves for fp32, of upper ones alone for
/// coarser precisions. The kernels' define PRODUCTS.
inline int split_products(const Problem& problem) {
    return problem.precision == Precision::fp32 ? 3 : 1;
}

/// How many times as fast a step is with a single product as with three: 1.4 to 1.7 on an H200.
constexpr double single_product_gain = 1.5;
inline double split_gain(int products) {
    return products == 1 ? single_product_gain : 1.0;
}

}  // namespace dlprim
