// SPDX-License-Identifier: MIT
// Weights in float, packed to 16 bits for the product of kernels/matrix/stored16.cl
// (kernels/matrix/stored16_pack.cl).
#pragma once

#include "engine/engine.hpp"
#include "engine/matrix/stored16_tile.hpp"

#include <cstdint>

namespace dlprim {

/// Where weights lie in the plain tensor: that of output o, input i and kernel position (h, w) is
/// element o*weight_out + i*weight_in + (h0 + h*h_step)*weight_w + w0 + w*w_step. A matrix has
/// kernels of 1 x 1.
struct WeightSource {
    std::int64_t outputs, inputs, kernel_h = 1, kernel_w = 1;
    std::int64_t weight_out, weight_in, weight_w = 1, h0 = 0, h_step = 1, w0 = 0, w_step = 1;
};

/// The packed weights, in bytes: see kernels/matrix/stored16_pack.cl. K goes by blocks of `block`
/// inputs (stored16_depth, or 1), within them by kernel positions.
struct Stored16Weights {
    std::int64_t rows, block, depth, steps, blocks_at, bytes;
    Stored16Weights(const WeightSource& source, std::int64_t block);
};
/// Adds the launch from the plain weights (operand 0) to the packed ones, from byte `at` of operand
/// 1 on.
void add_stored16_packing(KernelLaunch& launch, ContextImpl& context, const WeightSource& source,
                          DType dtype, std::int64_t block, std::int64_t at);
constexpr const char* stored16_weights_source = "matrix/stored16_pack.cl";

}  // namespace dlprim
