// SPDX-License-Identifier: MIT
// What the implicit_gemm engines share: the tiles that a work-group can make of a matrix product
// (kernels/common/gemm_tile.clh), the model of their speed, and the kernel that adds the parts of
// split sums.
#pragma once

#include "engine/engine.hpp"
#include "engine/storage.hpp"
#include "ops/conv2d/dense_job.hpp"
#include "ops/conv2d/options.hpp"

#include <string>
#include <utility>
#include <vector>

namespace dlprim::conv2d {

/// What the model knows of a work-group's tile.
struct TileShape {
    std::int64_t rows, columns, threads;
    double share;  ///< of the device's peak that it reaches at best
    /// Its part of a tuning.
    Tuning named() const { return {{"rows", rows}, {"columns", columns}, {"threads", threads}}; }
};

/// One shape of a work-group's tile in local memory.
struct GemmTile {
    int tx, ty, gm, gn;
    double share;  ///< of the device's peak that it reaches at best, for the model
    std::int64_t bm() const { return 4 * gm * ty; }
    std::int64_t bn() const { return 4 * gn * tx; }
    std::int64_t threads() const { return tx * ty; }
    TileShape shape() const { return {bm(), bn(), threads(), share}; }
    Tuning named() const { return shape().named(); }
};

/// Steps of K that lie in local memory at a time.
constexpr std::int64_t gemm_depth = 8;

/// The one that a tuning names.
GemmTile gemm_tile(const Tuning& tuning);
/// "-DTX=16 ...".
std::string gemm_tile_options(const GemmTile& tile);

/// The product of a tile's size, as engines see it: rows x columns x depth, `batches` times (groups
/// of a convolution), in parts of K.
struct GemmSize {
    std::int64_t rows, columns, depth, batches;
};
/// Seconds of the multiplication alone, by whole rounds of work-groups over the compute units.
double gemm_seconds(const Traits& device, const TileShape& tile, const GemmSize& size,
                    std::int64_t splits);

/// Tiles to choose from, the largest first.
using TileChoice = std::vector<TileShape>;
/// Those in local memory that fit the device.
TileChoice gemm_tiles(const Traits& device);

/// The cheapest tile and number of parts, "splits", by the model. A part has at least
/// `least_depth` steps of K and at most `most_depth` (the precision of its sum); parts of
/// `part_bytes` each are written and read again, to `limit_bytes` in all where that is possible.
Tuning choose_gemm(const Traits& device, const TileChoice& tiles, const GemmSize& size,
                   std::int64_t least_depth, std::int64_t most_depth, double part_bytes,
                   double limit_bytes);
/// Seconds of writing so many parts and adding them (add_split_sum); 0 for one.
double split_sum_seconds(const Traits& device, double part_bytes, std::int64_t splits);
/// Seconds with writing and adding the parts.
double split_gemm_seconds(const Traits& device, const TileShape& tile, const GemmSize& size,
                          std::int64_t splits, double part_bytes);
/// The tiles, and parts around the default's.
TuneSpace gemm_tune_space(const TileChoice& tiles, const Tuning& standard);

/// No, with the reason, unless all operands are float and every index that kernels count in 32
/// bits fits.
Verdict index_verdict(const Problem& problem);
/// The same, where images (not weights, bias, filter gradients) may be f16 and bf16, too.
Verdict narrow_index_verdict(const Problem& problem);
/// That, and the smallest tile fits the device.
Verdict implicit_gemm_verdict(const Traits& device, const Problem& problem);

/// No unless all is float, but images and epilogue operands, which may be f16 and bf16, too.
Verdict image_verdict(const Problem& problem);
/// Compiler options of a kernel that reads and writes the problem's images, A being its first
/// input, B the second of a filter gradient; C the output, or the parts of a split sum: those are
/// float.
std::string image_options(const Problem& problem, bool split);

/// Adds the call that makes the problem's output from `splits` parts in the workspace, from byte
/// `parts_at` of it on, with bias and epilogue (kernels/conv2d/split_sum.cl): from pixel
/// `first_pixel` of all images on.
void add_split_sum(KernelLaunch& launch, ContextImpl& context, const Problem& problem,
                   std::int64_t splits, std::uint64_t parts_at = 0, std::int64_t first_pixel = 0);
constexpr const char* split_sum_source = "conv2d/split_sum.cl";

/// Whether no tap reaches the outputs of a job: a phase of a data gradient whose stride exceeds the
/// kernel.
inline bool is_empty(const DenseJob& job) {
    return job.kernel_h * job.kernel_w == 0;
}
bool has_empty_phase(const std::vector<DenseJob>& jobs);
/// Adds the call that makes all of the output what it is where no tap reaches
/// (kernels/conv2d/phase_fill.cl). Jobs that are not empty come after it.
void add_phase_fill(KernelLaunch& launch, ContextImpl& context, const Problem& problem);
constexpr const char* phase_fill_source = "conv2d/phase_fill.cl";

/// Binds what kernels that gather taps of plain images ask of a job: the sizes x_h to dilate_w.
void bind_images(KernelCall& call, const DenseJob& job);

/// The forward geometry; images of a 1x1 convolution are one row.
Geometry flattened(const Problem& problem);
/// Of the output as float: parts of split sums are.
double output_bytes(const Problem& problem);

/// `items` work-items in groups of `group`, or of what the device allows.
NDRange rounded_range(const Traits& device, std::int64_t items, std::size_t group = 256);

}  // namespace dlprim::conv2d
