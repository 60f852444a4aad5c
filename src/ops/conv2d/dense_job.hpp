// SPDX-License-Identifier: MIT
// Convolutions and data gradients in the form in which kernels compute them on all devices.
#pragma once

#include "base/integers.hpp"
#include "engine/matrix/images.hpp"
#include "ops/conv2d/options.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace dlprim::conv2d {

/// A dense convolution. A forward problem is one job, and a data gradient is one job per phase of
/// the stride. "x" is the image that it reads, and "y" the one that it writes.
struct DenseJob : Images {
    std::int64_t n, groups, group_in, group_out;
    // The element of the plain weight for output channel o, input channel i and kernel position (h,
    // w) in group g is g*weight_group + o*weight_out + i*weight_in + (h0 + h*h_step)*weight_w + w0
    // + w*w_step.
    std::int64_t weight_group, weight_out, weight_in, weight_w, h0 = 0, h_step = 1, w0 = 0,
                                                                w_step = 1;
    // Whether rounding counts more than a few percent of the time (Problem::by_itself).
    bool rounds_less = false;
};

/// The forward problem as one job. If the kernel is 1x1, images are flattened to a single row.
DenseJob forward_job(const Geometry& g);
/// The data gradient, one job per phase. Jobs without a kernel position write zeros.
std::vector<DenseJob> backward_data_jobs(const Geometry& g);
/// The jobs of the given problem, a convolution or a data gradient.
std::vector<DenseJob> jobs_of(const Problem& problem);
/// Whether the job writes all of y, without gaps.
bool fills_y(const DenseJob& job);

}  // namespace dlprim::conv2d
