// SPDX-License-Identifier: MIT
// GridSample's options and types, and how positions become pixels, by PyTorch's rules.
#pragma once

#include "base/attrs.hpp"

#include <dlprim/shape.hpp>

#include <cstdint>

namespace dlprim::grid_sample {

constexpr const char* forward_type = "GridSample";
constexpr const char* backward_data_type = "GridSampleBackwardData";
constexpr const char* backward_grid_type = "GridSampleBackwardGrid";

enum class Mode : std::int32_t { bilinear, nearest, bicubic };
enum class Padding : std::int32_t { zeros, border, reflection };

struct Options {
    Mode mode = Mode::bilinear;
    Padding padding = Padding::zeros;
    bool align_corners = false;
    /// Throws Error(invalid_argument).
    explicit Options(const Attrs& attrs);
};

/// The sizes of a problem: images [n, c, h, w] and places [n, oh, ow, 2].
struct Sizes {
    std::int64_t n, c, h, w, oh, ow;
    Sizes(const Shape& x, const Shape& grid)
        : n(x[0]), c(x[1]), h(x[2]), w(x[3]), oh(grid[1]), ow(grid[2]) {}
};

}  // namespace dlprim::grid_sample
