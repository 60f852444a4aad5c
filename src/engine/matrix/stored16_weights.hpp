// SPDX-License-Identifier: MIT
// Packing of float weights to 16 bits (kernels/matrix/stored16_pack.cl), for the product of
// kernels/matrix/stored16.cl.
#pragma once

#include "engine/engine.hpp"
#include "engine/matrix/stored16_tile.hpp"

#include <cstdint>

namespace dlprim {

/// Where weights are in the plain tensor. The weight of output o, input i and kernel position (h,
/// w) is element o*weight_out + i*weight_in + (h0 + h*h_step)*weight_w + w0 + w*w_step. A matrix
/// has kernels of 1 x 1.
struct WeightSource {
    std::int64_t outputs, inputs, kernel_h = 1, kernel_w = 1;
    std::int64_t weight_out, weight_in, weight_w = 1, h0 = 0, h_step = 1, w0 = 0, w_step = 1;
};

/// Sizes and offsets of the packed weights; see kernels/matrix/stored16_pack.cl. Offsets are in
/// bytes. K runs over blocks of `block` inputs (stored16_depth, or 1), and within a block over
/// kernel positions.
struct Stored16Weights {
    std::int64_t rows, block, depth, steps, blocks_at, bytes;
    Stored16Weights(const WeightSource& source, std::int64_t block);
};
/// Adds the launch that packs the plain weights (operand 0) into operand 1, starting at byte `at`.
void add_stored16_packing(KernelLaunch& launch, ContextImpl& context, const WeightSource& source,
                          DType dtype, std::int64_t block, std::int64_t at);
constexpr const char* stored16_weights_source = "matrix/stored16_pack.cl";

}  // namespace dlprim
