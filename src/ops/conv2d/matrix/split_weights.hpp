// SPDX-License-Identifier: MIT
// The packed weights of the wgmma engines of convolutions and data gradients
// (kernels/conv2d/split_pack.cl): their layout, which depends on the tile, and the packing.
#pragma once

#include "engine/engine.hpp"
#include "ops/conv2d/dense_job.hpp"

#include <vector>

namespace dlprim::conv2d {

constexpr const char* split_weights_source = "conv2d/split_pack.cl";

/// The packed weights of one job: sizes, and offsets in bytes.
struct SplitWeights {
    /// For tiles of 64 * wm rows. For `products` see engine/matrix/split_products.hpp. With
    /// `blocks`, K runs over blocks of 64 input channels, padded with zeros, and within a block
    /// over taps. Without it, K runs over input channels, and within a channel over taps.
    SplitWeights(const DenseJob& job, std::int64_t wm, int products, bool blocks);
    /// For images of at most four channels. K runs over groups of `rows_a_step` rows of the kernel.
    /// Each row is padded with zeros to 16 / rows_a_step pixels. Within a row K runs over pixels,
    /// and within a pixel over four channels.
    static SplitWeights narrow(const DenseJob& job, std::int64_t wm, int products,
                               std::int64_t rows_a_step);

    DenseJob job;
    std::int64_t wm;
    int products;
    std::int64_t block;               ///< contiguous channels, inside the taps: 64, 4 or 1
    std::int64_t kernel_h, kernel_w;  ///< with padding
    std::int64_t depth, steps, rows;
    std::int64_t table_at, planes_at, bytes;

  private:
    SplitWeights(const DenseJob& job, std::int64_t wm, int products, std::int64_t block,
                 std::int64_t kernel_h, std::int64_t kernel_w);
};

/// Returns the layouts of all operands. All are plain except the weights (operand 1), which are
/// packed for the jobs, one after the other.
LayoutChoice split_weights_choice(const Problem& problem, const std::vector<SplitWeights>& jobs);
/// Returns `wm` for the layout of the problem's weights.
std::int64_t split_weight_rows(const Problem& problem);
/// Returns the launch that packs the plain weights (operand 0) into operand 1.
std::unique_ptr<Launch> pack_split_weights(ContextImpl& context,
                                           const std::vector<SplitWeights>& jobs);

}  // namespace dlprim::conv2d
