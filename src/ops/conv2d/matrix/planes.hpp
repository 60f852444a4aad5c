// SPDX-License-Identifier: MIT
// The product of kernels/conv2d/planes.cl. It reads images that are in the workspace as halves.
#pragma once

#include "ops/conv2d/matrix/split.hpp"
#include "ops/conv2d/matrix/split_weights.hpp"

#include <string>
#include <vector>

namespace dlprim::conv2d {

/// One launch of the product.
struct PlanesProduct {
    /// The convolution as the kernel sees it: the images have the borders that they have in memory.
    DenseJob job;
    SplitSize size;
    std::int64_t blocks;  ///< of channels
    std::int64_t pixels;  ///< of all images
    /// The size of the images in the workspace. Parts of sums are stored behind them.
    std::int64_t planes_bytes;
    std::int64_t rows_a_step = 0;      ///< for narrow images; 0 for others
    std::int64_t splits = 1;           ///< of K; several are written to the workspace
    std::int64_t column = 0, columns;  ///< of tiles: the first, and their number
    MatrixUnit unit;
};

/// Adds the launch. `weights` start at byte `weights_at` of operand 1, and the images start at the
/// beginning of the workspace. If K is in one part, the launch also applies the bias and the
/// problem's epilogue.
void add_planes_product(KernelLaunch& launch, ContextImpl& context, const Problem& problem,
                        const PlanesProduct& product, const SplitWeights& weights,
                        std::int64_t weights_at = 0);
/// Returns the kernel files that the product compiles.
std::vector<std::string> planes_product_sources();
/// The time of a step divided by wgmma_split's, whose steps also split the images.
constexpr double planes_pace = 0.6;
/// Returns 2 or 1 if local memory suffices for tiles of at most 128 or 64 rows, and 0 if it
/// suffices for neither.
std::int64_t most_planes_rows(MatrixUnit unit, const Traits& device, int products);

}  // namespace dlprim::conv2d
