// SPDX-License-Identifier: MIT
// The arguments that several kernels of the blocked engines have in common.
#include "ops/conv2d/blocked/blocked.hpp"

#include <cstdint>
#include <utility>

namespace dlprim::conv2d {

void bind_window(KernelCall& call, const DenseJob& job) {
    call.sizes({{"y_row0", job.row0},
                {"y_column0", job.column0},
                {"y_row_step", job.row_step},
                {"y_column_step", job.column_step},
                {"out_h", job.out_h},
                {"out_w", job.out_w},
                {"kernel_h", job.kernel_h},
                {"kernel_w", job.kernel_w},
                {"stride_h", job.stride_h},
                {"stride_w", job.stride_w},
                {"pad_h", job.pad_h},
                {"pad_w", job.pad_w},
                {"dilate_h", job.dilate_h},
                {"dilate_w", job.dilate_w}});
}

void bind_geometry(KernelCall& call, const Geometry& g) {
    call.sizes({{"x_h", g.h},
                {"x_w", g.w},
                {"out_h", g.oh},
                {"out_w", g.ow},
                {"kernel_h", g.kh},
                {"stride_h", g.sh},
                {"stride_w", g.sw},
                {"pad_h", g.pt},
                {"pad_w", g.pl},
                {"dilate_h", g.dh},
                {"dilate_w", g.dw}});
}

}  // namespace dlprim::conv2d
