// SPDX-License-Identifier: MIT
// Convolutions and data gradients in the terms that kernels compute them in, whatever the device.
#pragma once

#include "base/integers.hpp"
#include "ops/conv2d/options.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace dlprim::conv2d {

/// One dense convolution: the forward problem is one, the data gradient one for each phase of the
/// stride. "x" is what it reads and "y" what it writes.
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

/// The forward problem as one job, with images flattened to one row where the kernel is 1x1.
DenseJob forward_job(const Geometry& g);
/// The data gradient, a job for each phase; jobs without a kernel position write zeros.
std::vector<DenseJob> backward_data_jobs(const Geometry& g);
/// Those of a convolution's or a data gradient's problem, as it stands.
std::vector<DenseJob> jobs_of(const Problem& problem);
/// Whether the job writes all of y, without gaps.
bool fills_y(const DenseJob& job);

/// " -DO=2": an option of a kernel's build.
std::string define(std::string_view name, std::int64_t value);

}  // namespace dlprim::conv2d
