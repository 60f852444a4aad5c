// SPDX-License-Identifier: MIT
// Interpolation's options and geometry: output sizes and, for each output coordinate, the two input
// coordinates that it mixes, by PyTorch's rules (recompute_scale_factor=False).
#pragma once

#include "engine/engine.hpp"

#include <optional>
#include <vector>

namespace dlprim::interpolation {

enum class Mode { nearest, nearest_exact, bilinear };

struct Options {
    Mode mode = Mode::nearest;
    bool align_corners = false;
    std::optional<double> scale_y, scale_x;
    std::int64_t out_h = -1, out_w = -1;
    /// Throws Error(invalid_argument) unless either both scales or both sizes are given.
    explicit Options(const Attrs& attrs);
    Shape output_shape(const Shape& input) const;
};

/// One dimension: output o is (1 - weight[o]) * input[low[o]] + weight[o] * input[high[o]].
struct Axis {
    std::vector<std::int32_t> low, high;
    std::vector<float> weight;  ///< zero for the nearest modes
    /// Outputs [first[i], last[i]) include all that read input i.
    std::vector<std::int32_t> first, last;
    Axis(Mode mode, bool align_corners, std::optional<double> scale, std::int64_t in,
         std::int64_t out);
};

/// The two axes of a problem whose input has shape x and output y.
std::vector<Axis> axes(const Attrs& attrs, const Shape& x, const Shape& y);

/// An array viewed as [outer, height, width, inner], as in pooling.
struct View {
    std::int64_t outer = 0, inner = 1;
    View(const Shape& shape, const Layout& layout);
};

std::vector<LayoutChoice> layouts(const Traits& device, const Problem& problem);
Verdict is_applicable(const Problem& problem);

}  // namespace dlprim::interpolation
