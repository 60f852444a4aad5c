// SPDX-License-Identifier: MIT
// What the blocked engines share. They compute convolutions on CPUs through OpenCL. Activations are
// in blocks of as many channels as the device's vectors have lanes (Layout::blocked). Work-groups
// have one work-item each, whose accumulators fill the vector registers.
#pragma once

#include "engine/engine.hpp"
#include "ops/conv2d/blocked/reach.hpp"
#include "ops/conv2d/dense_job.hpp"

#include <array>
#include <string>
#include <vector>

namespace dlprim::conv2d {

/// The problem's geometry, with rows and columns exchanged where an image is a single column: tiles
/// are pieces of a row, and the tensors and the weight are the same memory either way.
Geometry lying_geometry(const Problem& problem);

/// Accumulators of a work-item: `vectors` vectors of output channels for each of `pixels` pixels.
struct Tile {
    int vectors;
    int pixels;
};

/// The tile and the reach of a job's slabs. They depend on channels only, so images of all sizes
/// share programs and packed weights.
Tile job_tile(const Traits& device, const DenseJob& job);
Reach job_reach(const Traits& device, const DenseJob& job);
/// The numbers of pixels for which kernels have code, the largest first. The last tile of an image
/// or row may have fewer pixels than the others.
std::array<int, 3> tile_sizes(const Tile& tile);
/// Cycles per input lane for a tile of so many pixels: two multiply-adds per cycle, two loads per
/// cycle, and at least four of latency.
double tile_cycles(const Tile& tile, std::int64_t pixels);
/// The same for `pixels` pixels in tiles of `size`, one of tile_sizes().
double tiles_cycles(const Tile& tile, int size, std::int64_t pixels);

/// No, with the reason, unless the device has wide vectors and all operands are float. Every engine
/// of this kind checks this first.
Verdict blocked_verdict(const Traits& device, const Problem& problem);
/// No, with the reason, for groups of one channel, which blocked_depthwise serves without products
/// of zeros.
Verdict groups_verdict(const Geometry& g);
/// The same as blocked_verdict() for an engine of weight gradients, which does not support
/// epilogues.
Verdict filter_verdict(const Traits& device, const Problem& problem);
/// No, with the reason, unless Winograd's method applies: a 3x3 kernel without stride and dilation,
/// a single group, and channels that fill a vector.
Verdict winograd_verdict(const Traits& device, const Geometry& g);

/// `vectors`, or one more if that is even. A tile has one place in each row, and rows of odd length
/// put these places into different cache sets.
constexpr std::int64_t odd(std::int64_t vectors) {
    return vectors | 1;
}

/// The program of kernels/conv2d/<file>, with the epilogue on vectors of `lanes` lanes; 0: those of
/// the device.
std::shared_ptr<Program> conv_program(ContextImpl& context, const char* file,
                                      const std::string& options, const Epilogue& epilogue = {},
                                      int lanes = 0);

/// A range of `items` work-groups with one work-item each.
NDRange single_items(std::int64_t items);

/// Binds the parameters that say what a job's kernel covers: where in y its pixels lie, out_h and
/// out_w, and kernel, stride, pad and dilation of both directions.
void bind_window(KernelCall& call, const DenseJob& job);
/// Binds the parameters of a filter gradient's kernel that say the same of a convolution: the sizes
/// of x and of dy, kernel_h, and stride, pad and dilation. kernel_w is up to the caller, because
/// some kernels have it as a define.
void bind_geometry(KernelCall& call, const Geometry& g);

/// Bytes of a job's packed weights.
std::uint64_t packed_bytes(const Traits& device, const DenseJob& job);
/// Identifies a way of packing: equal tags mean equal bytes.
std::string pack_tag(const Traits& device, const std::vector<DenseJob>& jobs);
/// The call that packs a job's weights to byte `at` of the packed operand (operand 0 is plain, 1 is
/// packed). Input blocks have `in_lanes` channels, and tiles have `tile_blocks` output blocks. The
/// weights lie behind `zeros` floats of zero.
void add_packing(KernelLaunch& launch, ContextImpl& context, const DenseJob& job, int zeros,
                 int in_lanes, int tile_blocks, std::uint64_t at);
/// The calls that pack the weights of `jobs` one after the other (operand 0 is plain, 1 is packed).
std::unique_ptr<Launch> pack_jobs(ContextImpl& context, const std::vector<DenseJob>& jobs);
/// The operands of a job by number.
struct JobOperands {
    int x, weight;
    std::uint64_t weight_bytes;  ///< where the job's packed weights begin in `weight`
    int bias;                    ///< -1 for none
    int y;
};
/// Adds the call of one job.
void add_job(KernelLaunch& launch, ContextImpl& context, const Problem& problem,
             const DenseJob& job, const JobOperands& operands);

/// Whether a 1x1 kernel with a stride skips most of x. Then it is faster to copy the pixels that it
/// reads. Without the copy, rows with gaps would be read once per group of output channels, in
/// tiles that waste the end of each short row.
bool reads_subsample(const Geometry& g);
/// The geometry of the convolution on that copy.
Geometry without_stride(Geometry g);
/// Bytes of that copy.
std::int64_t subsample_bytes(const Traits& device, const Geometry& g);
/// The call that copies x, which is operand 0, to byte `at` of operand `to`.
void add_subsampling(KernelLaunch& launch, ContextImpl& context, const Geometry& g, int to,
                     std::uint64_t at);

/// No, with the reason, unless patches_geometry() describes the convolution: few channels of a
/// plain image, and windows that neither overlap nor leave gaps.
Verdict patches_verdict(const Traits& device, const Geometry& g);
/// The 1x1 convolution of a copy of x that has the taps of each window as channels.
Geometry patches_geometry(Geometry g);
/// Bytes of that copy.
std::int64_t patches_bytes(const Traits& device, const Geometry& g);
/// The estimate of the gradient of weights with that copy.
double patches_seconds(const Traits& device, const Problem& problem);
/// The call that copies the windows of x, which is operand 0, to byte `at` of operand `to`.
void add_patches(KernelLaunch& launch, ContextImpl& context, const Geometry& g, int to,
                 std::uint64_t at);

/// How the rows of dy are divided for a filter gradient: each image has `chunks` chunks of `rows`
/// rows, and all chunks are divided into `splits` partial sums.
struct RowSplit {
    std::int64_t rows, chunks, splits;
};
/// `tiles` is the number of parts of the weight that are computed separately anyway, and each needs
/// sums of `sum_bytes`. Chunks have about `pixels` pixels.
RowSplit split_rows(const Traits& device, const Geometry& g, std::int64_t tiles,
                    std::int64_t pixels, std::int64_t sum_bytes);

}  // namespace dlprim::conv2d
