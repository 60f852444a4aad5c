// SPDX-License-Identifier: MIT
// Expresses convolutions and data gradients as dense jobs.
#include "ops/conv2d/dense_job.hpp"

#include "base/text.hpp"

#include <numeric>

namespace dlprim::conv2d {

namespace {

// The taps of a kernel dimension that contribute to the outputs of one phase, and where these read.
struct PhaseTaps {
    std::int64_t first = 0, step = 1, count = 0;  // taps first, first + step, ...
    std::int64_t dilate = 1;                      // between neighbouring taps in dy
    std::int64_t pad = 0;             // padding of the convolution of dy with the reversed taps
    std::int64_t out0 = 0, outs = 0;  // first output of the phase, and their number
};

// dx[i] = sum over k of dy[(i + pad - k*dilate) / stride] * w[k], for all k for which the division
// is exact. A phase has the outputs with (i + pad) % stride == phase.
PhaseTaps phase_taps(std::int64_t phase, std::int64_t size, std::int64_t kernel,
                     std::int64_t stride, std::int64_t pad, std::int64_t dilate) {
    PhaseTaps taps;
    taps.out0 = ((phase - pad) % stride + stride) % stride;
    taps.outs = taps.out0 < size ? ceil_div(size - taps.out0, stride) : 0;
    const std::int64_t common = std::gcd(stride, dilate);
    taps.step = stride / common;
    taps.dilate = dilate / common;
    taps.first = -1;
    for (std::int64_t k = 0; k < kernel && taps.first < 0; ++k)
        if ((phase - k * dilate) % stride == 0) taps.first = k;
    if (taps.first < 0) {
        taps.first = 0;
        return taps;
    }
    taps.count = ceil_div(kernel - taps.first, taps.step);
    // For tap t, output j of the phase reads dy at start + j - t*dilate. Reversing the taps makes
    // these positions ascend.
    const std::int64_t start = (taps.out0 + pad - taps.first * dilate) / stride;  // divides exactly
    taps.pad = (taps.count - 1) * taps.dilate - start;
    return taps;
}

}  // namespace

DenseJob forward_job(const Geometry& g) {
    DenseJob job{};
    job.n = g.n;
    job.groups = g.groups;
    job.group_in = g.group_in();
    job.group_out = g.group_out();
    job.kernel_h = g.kh;
    job.kernel_w = g.kw;
    job.row_step = job.column_step = job.h_step = job.w_step = 1;
    job.stride_h = g.sh;
    job.stride_w = g.sw;
    job.pad_h = g.pt;
    job.pad_w = g.pl;
    job.dilate_h = g.dh;
    job.dilate_w = g.dw;
    job.weight_w = g.kw;
    job.weight_in = g.kh * g.kw;
    job.weight_out = g.group_in() * g.kh * g.kw;
    job.weight_group = g.group_out() * job.weight_out;
    const bool flat = g.pointwise();
    job.x_h = flat ? 1 : g.h;
    job.x_w = flat ? g.h * g.w : g.w;
    job.y_h = job.out_h = flat ? 1 : g.oh;
    job.y_w = job.out_w = flat ? g.oh * g.ow : g.ow;
    return job;
}

std::vector<DenseJob> backward_data_jobs(const Geometry& g) {
    DenseJob base{};
    base.n = g.n;
    base.groups = g.groups;
    base.group_in = g.group_out();
    base.group_out = g.group_in();
    base.stride_h = base.stride_w = 1;
    base.weight_w = g.kw;
    base.weight_out = g.kh * g.kw;
    base.weight_in = g.group_in() * g.kh * g.kw;
    base.weight_group = g.group_out() * base.weight_in;
    const bool flat = g.pointwise();
    base.x_h = flat ? 1 : g.oh;
    base.x_w = flat ? g.oh * g.ow : g.ow;
    base.y_h = flat ? 1 : g.h;
    base.y_w = flat ? g.h * g.w : g.w;
    base.row_step = g.sh;
    base.column_step = g.sw;
    std::vector<DenseJob> jobs;
    for (std::int64_t ph = 0; ph < g.sh; ++ph)
        for (std::int64_t pw = 0; pw < g.sw; ++pw) {
            const PhaseTaps h = phase_taps(ph, base.y_h, g.kh, g.sh, g.pt, g.dh);
            const PhaseTaps w = phase_taps(pw, base.y_w, g.kw, g.sw, g.pl, g.dw);
            if (h.outs == 0 || w.outs == 0) continue;
            DenseJob job = base;
            job.out_h = h.outs;
            job.out_w = w.outs;
            job.row0 = h.out0;
            job.column0 = w.out0;
            job.kernel_h = w.count > 0 ? h.count : 0;
            job.kernel_w = h.count > 0 ? w.count : 0;
            job.pad_h = h.pad;
            job.pad_w = w.pad;
            job.dilate_h = h.dilate;
            job.dilate_w = w.dilate;
            job.h0 = h.first + (h.count - 1) * h.step;
            job.h_step = -h.step;
            job.w0 = w.first + (w.count - 1) * w.step;
            job.w_step = -w.step;
            jobs.push_back(job);
        }
    return jobs;
}

std::vector<DenseJob> jobs_of(const Problem& problem) {
    const Geometry g = Geometry::of(problem);
    if (problem.op == backward_data_type) return backward_data_jobs(g);
    return {forward_job(g)};
}

bool fills_y(const DenseJob& job) {
    return job.fill_y();
}

}  // namespace dlprim::conv2d
