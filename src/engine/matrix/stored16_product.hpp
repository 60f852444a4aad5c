// SPDX-License-Identifier: MIT
// The product of images or matrices in 16 bits with packed weights (kernels/matrix/stored16.cl),
// and the sum of the parts of split-K. Convolutions, data gradients and MatMul are adapters: they
// describe where the rows are in their tensors.
#pragma once

#include "engine/engine.hpp"
#include "engine/matrix/images.hpp"
#include "engine/matrix/stored16_tile.hpp"
#include "engine/matrix/stored16_weights.hpp"

#include <string>
#include <vector>

namespace dlprim {

/// One launch of the product. x is operand 0 and the weights are operand 1. The result goes to the
/// problem's output or, with split-K, to the workspace.
struct Stored16Product {
    Images images;              ///< which pixels of x a row reads
    std::int64_t pixels;        ///< rows
    std::int64_t channels_in;   ///< K is this many for each tap
    std::int64_t channels_out;  ///< columns
    Stored16Weights weights;
    std::int64_t weights_at = 0;  ///< offset of the weights in operand 1, in bytes
    std::int64_t splits = 1;
    int bias = -1;  ///< the operand, a float per column; -1: none

    std::int64_t rows, columns;  ///< of a tile
    std::int64_t stages;         ///< an upper bound: sums of few steps get fewer
    bool near = false;           ///< copies of x go through the first-level cache
    MatrixUnit unit;
};
/// Adds the launch. If K is in one part, it also applies the bias and the problem's epilogue.
void add_stored16_product(KernelLaunch& launch, ContextImpl& context, const Problem& problem,
                          const Stored16Product& product);
/// Adds the call that computes y from `splits` parts in the workspace
/// (kernels/matrix/stored16_sum.cl), in work-groups of `group_items` work-items. The channels of y
/// are last.
void add_stored16_sum(KernelLaunch& launch, ContextImpl& context, const Problem& problem,
                      std::int64_t splits, std::int64_t channels, int bias,
                      std::size_t group_items);
/// Returns the kernel files that the product, the sum and the packing compile.
std::vector<std::string> stored16_product_sources();

}  // namespace dlprim
