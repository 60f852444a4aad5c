// SPDX-License-Identifier: MIT
// The product of kernels/conv2d/planes.cl, over images that lie in the workspace as halves.
#pragma once

#include "ops/conv2d/matrix/split.hpp"
#include "ops/conv2d/matrix/split_weights.hpp"

#include <string>
#include <vector>

namespace dlprim::conv2d {

/// One launch of it.
struct PlanesProduct {
    DenseJob job;  ///< as the kernel sees it: images with the borders that they have in memory
    SplitSize size;
    std::int64_t blocks;               ///< of channels
    std::int64_t pixels;               ///< of all images
    std::int64_t planes_bytes;         ///< of the workspace, behind which parts of sums lie
    std::int64_t rows_a_step = 0;      ///< of narrow images; 0 for others
    std::int64_t splits = 1;           ///< parts of K, to the workspace where there are several
    std::int64_t column = 0, columns;  ///< of tiles: the first, and how many
    MatrixUnit unit;
};

/// Adds it: `weights` are at byte `weights_at` of operand 1, images at the start of the workspace.
/// A bias and the problem's epilogue where K is whole.
void add_planes_product(KernelLaunch& launch, ContextImpl& context, const Problem& problem,
                        const PlanesProduct& product, const SplitWeights& weights,
                        std::int64_t weights_at = 0);
/// The kernel files that it compiles.
std::vector<std::string> planes_product_sources();
/// A step's time over wgmma_split's, which has more to do in it.
constexpr double planes_pace = 0.6;
/// Its tiles may have 128 rows, 64 (2, 1), or not be at all (0), by the local memory there is.
std::int64_t most_planes_rows(MatrixUnit unit, const Traits& device, int products);

}  // namespace dlprim::conv2d
