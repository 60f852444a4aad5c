// SPDX-License-Identifier: MIT
// Addressing of products whose rows are pixels of images: which pixels of x the taps of a pixel of
// y read, and where in y the pixel is stored. Convolutions and phases of a data gradient use the
// same kernels with different addressing. So do plain matrices: the lines of a matrix are the
// pixels of one image with a single row.
#pragma once

#include "engine/launch.hpp"

#include <cstdint>

namespace dlprim {

struct Images {
    std::int64_t x_h, x_w, y_h, y_w;  ///< sizes of the images in memory
    std::int64_t out_h, out_w;        ///< rows and columns of y that are computed
    /// Where they are in y: the first row and column, and the distances between them.
    std::int64_t row0 = 0, column0 = 0, row_step = 1, column_step = 1;
    std::int64_t stride_h = 1, stride_w = 1, pad_h = 0, pad_w = 0, dilate_h = 1, dilate_w = 1;
    std::int64_t kernel_h = 1, kernel_w = 1;

    /// Returns a matrix with that many lines, as the pixels of one image with a single row.
    static Images matrix(std::int64_t lines) { return {1, lines, 1, lines, 1, lines}; }
    /// Whether pixel p of y reads pixel p of x and nothing else.
    bool direct() const;
    /// Whether all of y is computed, without gaps.
    bool fill_y() const;
};

/// Binds the sizes that kernels take, from x_h to dilate_w.
void bind_images(KernelCall& call, const Images& images);

}  // namespace dlprim
