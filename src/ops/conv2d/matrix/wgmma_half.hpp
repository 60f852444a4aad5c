// SPDX-License-Identifier: MIT
// What the wgmma_half and mma_half engines share: products of images that are stored as halves or
// bfloat16, by one of NVIDIA's matrix units (kernels/common/matrix_half.clh).
#pragma once

#include "engine/engine.hpp"
#include "engine/matrix_unit.hpp"
#include "ops/conv2d/dense_job.hpp"

#include <initializer_list>
#include <vector>

namespace dlprim::conv2d {

/// K of a step, work-items of a work-group, rows of a block of packed weights.
constexpr std::int64_t half_depth = 64, half_items = 256, half_block = 64;

/// What kernels call a stored type: 0 float, 1 half, 2 bfloat16.
int half_kind(DType dtype);

/// Whether the problem's precision lets factors be rounded to that type.
bool half_precision(const Problem& problem, DType dtype);
/// No, with the reason, unless the device has the unit, for `product`, which is multiplied, and for
/// what the output is stored in, and the problem one group and sizes that 32 bits count. What other
/// operands are stored in does not matter.
Verdict half_size_verdict(MatrixUnit unit, const Traits& device, const Problem& problem,
                          DType product);
/// No, with the reason, unless a work-group has that much local memory.
Verdict half_local_verdict(MatrixUnit unit, const Traits& device, std::int64_t bytes);
/// No, with the reason, unless all operands are float but those inputs, and with `output` the
/// output and what epilogues add, which may be half and bfloat16, too.
Verdict half_storage_verdict(const Problem& problem, std::initializer_list<int> inputs,
                             bool output);

/// One job's packed weights, in bytes: see kernels/conv2d/wgmma_half_pack.cl. K goes by blocks of
/// `block` input channels (half_depth, or 1), within them by taps.
struct HalfWeights {
    std::int64_t rows, block, depth, steps, blocks_at, bytes;
    HalfWeights(const DenseJob& job, std::int64_t block);
};
/// Those of all jobs, one behind the other.
Layout half_weights_layout(const std::vector<DenseJob>& jobs, DType dtype, std::int64_t block);
/// From the plain weights (operand 0) to the packed ones (operand 1).
std::unique_ptr<Launch> pack_half_weights(ContextImpl& context, const std::vector<DenseJob>& jobs,
                                          DType dtype, std::int64_t block);
constexpr const char* half_weights_source = "conv2d/wgmma_half_pack.cl";

/// Adds the call that makes a filter gradient from `count` parts in the workspace
/// (kernels/conv2d/wgmma_half_filter_sum.cl).
void add_half_filter_sum(KernelLaunch& launch, ContextImpl& context, const Problem& problem,
                         std::int64_t count, std::int64_t taps, std::int64_t channels);
constexpr const char* half_filter_sum_source = "conv2d/wgmma_half_filter_sum.cl";

/// A work-group's tile, and how many work-groups of it a compute unit holds.
struct HalfTile {
    std::int64_t rows, columns;
    double tflops;  ///< of a whole H200, for the model
    int resident;
    std::int64_t most_stages;  ///< 2 or more, or it does not fit
    std::int64_t stage_bytes() const { return (rows + columns) * 128; }
    /// Its part of a tuning.
    Tuning named() const { return {{"rows", rows}, {"columns", columns}}; }
};
/// The tiles as they are on that unit: their speed, and as many stages as fit into the local memory
/// of a work-group, beside `row_bytes` a row; with `sums` a row of the results fits, too.
std::vector<HalfTile> half_tiles(std::vector<HalfTile> tiles, MatrixUnit unit, const Traits& device,
                                 std::int64_t row_bytes, bool sums);
/// No, with the reason, unless one of them fits.
Verdict half_tiles_verdict(const std::vector<HalfTile>& tiles);
/// The product of one launch.
struct HalfSize {
    std::int64_t rows, columns, steps;
};
/// Seconds of the multiplication with K in so many parts.
double half_seconds(const Traits& device, const HalfTile& tile, const HalfSize& size,
                    std::int64_t splits);
/// The cheapest of the tiles by the model, "splits", "stages" and "near". Parts of
/// `part_bytes` each are written and read again, to `limit_bytes` in all.
Tuning choose_half(const Traits& device, const std::vector<HalfTile>& tiles, const HalfSize& size,
                   double part_bytes, double limit_bytes, bool near);
/// Tiles that waste no more than half of what they compute, stages that fit, and parts around the
/// default's.
TuneSpace half_tune_space(const std::vector<HalfTile>& tiles, const HalfSize& size,
                          const Tuning& standard, bool near);
/// The tuning's stages, or as many as the tile lets fit.
std::int64_t half_stages(const HalfTile& tile, const Tuning& tuning);

}  // namespace dlprim::conv2d
