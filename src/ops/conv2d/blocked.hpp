// SPDX-License-Identifier: MIT
// What the blocked engines share: convolutions for CPUs through OpenCL over activations in blocks
// of as many channels as the device's vectors have lanes (Layout::blocked), by single work-items
// whose accumulators fill the vector registers.
#pragma once

#include "engine/engine.hpp"
#include "ops/conv2d/options.hpp"

#include <string>
#include <vector>

namespace dlprim::conv2d {

/// One dense convolution in the terms of kernels/conv2d/blocked.cl: the forward problem is one, the
/// data gradient one for each phase of the stride. "x" is what it reads and "y" what it writes.
struct DenseJob {
    std::int64_t n, groups, group_in, group_out;
    std::int64_t x_h, x_w, y_h, y_w;  ///< sizes of the images in memory
    std::int64_t out_h, out_w;        ///< rows and columns of y that it makes
    std::int64_t row0 = 0, column0 = 0, row_step = 1, column_step = 1;  ///< where in y they go
    std::int64_t kernel_h, kernel_w, stride_h, stride_w, pad_h, pad_w, dilate_h, dilate_w;
    // The plain weight element of its output channel o, input channel i, kernel position (h, w) in
    // group g: g*weight_group + o*weight_out + i*weight_in + (h0 + h*h_step)*weight_w + w0 +
    // w*w_step.
    std::int64_t weight_group, weight_out, weight_in, weight_w, h0 = 0, h_step = 1, w0 = 0,
                                                                w_step = 1;
};

/// Accumulators of a work-item: `blocks` vectors of output channels by `pixels` of a row.
struct Tile {
    int blocks;
    int pixels;
};

/// The forward problem as one job, with images flattened to one row where the kernel is 1x1.
DenseJob forward_job(const Geometry& g);
/// The data gradient, a job for each phase; jobs without a kernel position write zeros.
std::vector<DenseJob> backward_data_jobs(const Geometry& g);
/// Those of a convolution's or a data gradient's problem, as it stands.
std::vector<DenseJob> jobs_of(const Problem& problem);
/// Whether the job writes all of y, without gaps.
bool fills_y(const DenseJob& job);

/// The tile that wastes least, of those that fit the device's registers.
Tile choose_tile(const Traits& device, std::int64_t out_blocks, std::int64_t out_w);

inline std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
    return (a + b - 1) / b;
}

/// No, with the reason, unless the device has wide vectors, and all operands are float. What every
/// engine of this kind asks first.
Verdict blocked_verdict(const Traits& device, const Problem& problem);

/// "-DV=16 -DO=2 ..." of kernels/conv2d/blocked.cl and the like.
std::string define(std::string_view name, std::int64_t value);

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
