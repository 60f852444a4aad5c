// SPDX-License-Identifier: MIT
// What engines share that multiply floats as sums of halves on matrix units
// (kernels/matrix/halves.clh).
#pragma once

#include "engine/problem.hpp"

namespace dlprim {

/// How many products of halves replace one product of floats. fp32 needs three, of upper and lower
/// halves. Coarser precisions need one, of the upper halves. Kernels have it as the define
/// PRODUCTS.
inline int split_products(const Problem& problem) {
    return problem.precision == Precision::fp32 ? 3 : 1;
}

/// A step with a single product is this many times as fast as one with three. On an H200 it is 1.4
/// to 1.7 times.
constexpr double single_product_gain = 1.5;
inline double split_gain(int products) {
    return products == 1 ? single_product_gain : 1.0;
}

}  // namespace dlprim
