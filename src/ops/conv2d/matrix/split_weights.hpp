// SPDX-License-Identifier: MIT
// Weights as the wgmma engines of convolutions and data gradients read them
// (kernels/conv2d/split_pack.cl): the layout, which names the tile, and its packing.
#pragma once

#include "engine/engine.hpp"
#include "ops/conv2d/dense_job.hpp"

#include <vector>

namespace dlprim::conv2d {

constexpr const char* split_weights_source = "conv2d/split_pack.cl";

/// One job's weights, and where things are in them, in bytes.
struct SplitWeights {
    /// For tiles of 64 * wm rows; `products`: see engine/matrix/split_products.hpp. With `blocks` K
    /// goes by blocks of 64 input channels, filled up with zeros, within them by taps; else by
    /// input channels, within them by taps.
    SplitWeights(const DenseJob& job, std::int64_t wm, int products, bool blocks);
    /// For images of at most four channels: K goes by `rows_a_step` rows of the kernel, filled up
    /// with zeros to 16 / rows_a_step pixels each, within them by pixels and four channels.
    static SplitWeights narrow(const DenseJob& job, std::int64_t wm, int products,
                               std::int64_t rows_a_step);

    DenseJob job;
    std::int64_t wm;
    int products;
    std::int64_t block;               ///< channels in sequence, within them taps: 64, 4 or 1
    std::int64_t kernel_h, kernel_w;  ///< with what fills them up
    std::int64_t depth, steps, rows;
    std::int64_t table_at, planes_at, bytes;

  private:
    SplitWeights(const DenseJob& job, std::int64_t wm, int products, std::int64_t block,
                 std::int64_t kernel_h, std::int64_t kernel_w);
};

/// All operands plain but the weights (operand 1), which are packed for the jobs, one after the
/// other.
LayoutChoice split_weights_choice(const Problem& problem, const std::vector<SplitWeights>& jobs);
/// wm of the layout that the problem's weights have.
std::int64_t split_weight_rows(const Problem& problem);
/// From the plain weights (operand 0) to the packed ones (operand 1).
std::unique_ptr<Launch> pack_split_weights(ContextImpl& context,
                                           const std::vector<SplitWeights>& jobs);

}  // namespace dlprim::conv2d
