// SPDX-License-Identifier: MIT
// The product of images or matrices in 16 bits with packed weights (kernels/matrix/stored16.cl),
// and the sum of its parts of K. Convolutions, data gradients and MatMul are adapters: they say
// where rows lie.
#pragma once

#include "engine/engine.hpp"
#include "engine/matrix/images.hpp"
#include "engine/matrix/stored16_tile.hpp"
#include "engine/matrix/stored16_weights.hpp"

#include <string>
#include <vector>

namespace dlprim {

/// One launch of it: x is operand 0, the weights are operand 1, y is the problem's output, or with
/// several parts of K the workspace.
struct Stored16Product {
    Images images;              ///< which pixels of x a row reads
    std::int64_t pixels;        ///< rows
    std::int64_t channels_in;   ///< K, but for taps
    std::int64_t channels_out;  ///< columns
    Stored16Weights weights;
    std::int64_t weights_at = 0;  ///< bytes
    std::int64_t splits = 1;
    int bias = -1;  ///< the operand, a float a column; -1: none

    std::int64_t rows, columns;  ///< of a tile
    std::int64_t stages;         ///< at most; sums of few steps get fewer
    bool near = false;           ///< copies of x go through the first-level cache
    MatrixUnit unit;
};
/// Adds it, with bias and the problem's epilogue where K is whole.
void add_stored16_product(KernelLaunch& launch, ContextImpl& context, const Problem& problem,
                          const Stored16Product& product);
/// Adds the call that makes y, whose channels lie last, from `splits` parts in the workspace
/// (kernels/matrix/stored16_sum.cl), in work-groups of `group_items`.
void add_stored16_sum(KernelLaunch& launch, ContextImpl& context, const Problem& problem,
                      std::int64_t splits, std::int64_t channels, int bias,
                      std::size_t group_items);
/// The kernel files that they and the packing compile.
std::vector<std::string> stored16_product_sources();

}  // namespace dlprim
