// SPDX-License-Identifier: MIT
// Addressing of products whose rows are pixels of images: which pixels of x the taps of a pixel of
// y read, and where in y it goes. A convolution, a phase of a data gradient, and a plain matrix,
// whose lines are the pixels of one image of one row, supply it to the same kernels.
#pragma once

#include "engine/launch.hpp"

#include <cstdint>

namespace dlprim {

struct Images {
    std::int64_t x_h, x_w, y_h, y_w;  ///< sizes of the images in memory
    std::int64_t out_h, out_w;        ///< rows and columns of y that are made
    std::int64_t row0 = 0, column0 = 0, row_step = 1, column_step = 1;  ///< where in y they go
    std::int64_t stride_h = 1, stride_w = 1, pad_h = 0, pad_w = 0, dilate_h = 1, dilate_w = 1;
    std::int64_t kernel_h = 1, kernel_w = 1;

    /// `lines` pixels of one image of one row.
    static Images matrix(std::int64_t lines) { return {1, lines, 1, lines, 1, lines}; }
    /// Whether pixel p of y reads pixel p of x and nothing else.
    bool direct() const;
    /// Whether all of y is made, without gaps.
    bool fill_y() const;
};

/// Binds what kernels ask of it: the sizes x_h to dilate_w.
void bind_images(KernelCall& call, const Images& images);

}  // namespace dlprim
