// SPDX-License-Identifier: MIT
// What the blocked engines share: convolutions for CPUs through OpenCL over activations in blocks
// of as many channels as the device's vectors have lanes (Layout::blocked), by single work-items
// whose accumulators fill the vector registers.
#pragma once

#include "engine/engine.hpp"
#include "ops/conv2d/dense_job.hpp"

#include <string>
#include <vector>

namespace dlprim::conv2d {

/// Accumulators of a work-item: `blocks` vectors of output channels by `pixels` of a row.
struct Tile {
    int blocks;
    int pixels;
};

/// The tile that wastes least, of those that fit the device's registers.
Tile choose_tile(const Traits& device, std::int64_t out_blocks, std::int64_t out_w);

/// No, with the reason, unless the device has wide vectors, and all operands are float. What every
/// engine of this kind asks first.
Verdict blocked_verdict(const Traits& device, const Problem& problem);
/// The same for an engine of weights' gradients, which has no epilogue.
Verdict filter_verdict(const Traits& device, const Problem& problem);
/// No, with the reason, unless Winograd's methods apply: a 3x3 kernel without stride and dilation,
/// one group, channels that fill a vector.
Verdict winograd_verdict(const Traits& device, const Geometry& g);

/// `vectors`, or one more where that is even: rows of such a length put a tile's places, one a row,
/// into different sets of a cache.
constexpr std::int64_t odd(std::int64_t vectors) {
    return vectors | 1;
}

/// A program of kernels/conv2d/<file>, with the epilogue on vectors.
std::shared_ptr<Program> conv_program(ContextImpl& context, const char* file,
                                      const std::string& options, const Epilogue& epilogue = {});

/// `items` work-items of one lane each.
NDRange single_items(std::int64_t items);

/// Bytes of a job's packed weights.
std::uint64_t packed_bytes(const Traits& device, const DenseJob& job);
/// What tells packed weights apart: equal tags, equal bytes.
std::string pack_tag(const Traits& device, const std::vector<DenseJob>& jobs);
/// The call that packs a job's weights for input blocks of `in_lanes` channels and tiles of
/// `tile_blocks` output blocks, to byte `at` of the packed operand (operand 0 plain, 1 packed).
void add_packing(KernelLaunch& launch, ContextImpl& context, const DenseJob& job, int in_lanes,
                 int tile_blocks, std::uint64_t at);
/// The calls that pack the weights of `jobs` one behind the other (operand 0 plain, 1 packed).
std::unique_ptr<Launch> pack_jobs(ContextImpl& context, const std::vector<DenseJob>& jobs);
/// Adds the call of one job: reads operand `x`, packed weights at `weight_bytes` of operand `w`,
/// writes operand `y`; `bias` -1 for none.
void add_job(KernelLaunch& launch, ContextImpl& context, const Problem& problem,
             const DenseJob& job, int x, int w, std::uint64_t weight_bytes, int bias, int y);

/// Whether a 1x1 kernel with a stride leaves out most of x. Copying what it reads takes less time
/// than it costs to read rows with gaps once for each group of output channels, in tiles that waste
/// the end of each short row.
bool reads_subsample(const Geometry& g);
/// The convolution over the copy.
Geometry without_stride(Geometry g);
/// Bytes of the copy.
std::int64_t subsample_bytes(const Traits& device, const Geometry& g);
/// The call that copies x, operand 0, to byte `at` of operand `to`.
void add_subsampling(KernelLaunch& launch, ContextImpl& context, const Geometry& g, int to,
                     std::uint64_t at);

/// How the rows of dy are shared out for a filter gradient: chunks of `rows` rows of an image,
/// `chunks` an image, summed in `splits` parts.
struct RowSplit {
    std::int64_t rows, chunks, splits;
};
/// For `tiles` parts of the weight that are computed apart anyway, whose sums take `sum_bytes`
/// each, and chunks of about `pixels` pixels.
RowSplit split_rows(const Traits& device, const Geometry& g, std::int64_t tiles,
                    std::int64_t pixels, std::int64_t sum_bytes);

}  // namespace dlprim::conv2d
