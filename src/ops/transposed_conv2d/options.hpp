// SPDX-License-Identifier: MIT
// Options of TransposedConvolution2D.
#pragma once

#include "base/attrs.hpp"

#include <array>
#include <cstdint>
#include <string>

namespace dlprim::transposed_conv2d {

/// Options as read from Attrs. Pairs are [height, width].
struct TransposedOptions {
    std::int64_t channels_out = 0;
    std::int64_t channels_in = -1;  ///< -1: deduced
    std::int64_t groups = 1;
    bool bias = true;
    std::array<std::int64_t, 2> kernel{1, 1}, stride{1, 1}, dilate{1, 1}, output_pad{0, 0};
    std::array<std::int64_t, 4> pad{0, 0, 0, 0};  ///< top, left, bottom, right
    std::string activation = "identity";

    /// Throws Error(invalid_argument) on sizes below 1, negative pads, lists of another length, and
    /// an output_pad that neither stride nor dilate exceeds.
    static TransposedOptions read(const Attrs& attrs);
    /// Rows (dim 0) or columns (dim 1) of the output for `size` of them in the input.
    std::int64_t output_size(std::int64_t size, int dim) const;
};

}  // namespace dlprim::transposed_conv2d
