// SPDX-License-Identifier: MIT
// Resize's geometry: for each output of a dimension the inputs that it mixes and their weights, by
// PyTorch's rules.
#pragma once

#include "base/attrs.hpp"

#include <dlprim/shape.hpp>

#include <array>
#include <optional>
#include <vector>

namespace dlprim::resize {

constexpr const char* forward_type = "Resize";
constexpr const char* backward_type = "ResizeBackward";

enum class Method { nearest, nearest_exact, linear, cubic };

struct Options {
    Method method = Method::nearest;
    bool align_corners = false, antialias = false;
    Ints output;     ///< empty: from the scales
    Doubles scales;  ///< empty: from the sizes

    /// Throws Error(invalid_argument).
    explicit Options(const Attrs& attrs);
    /// Throws Error(invalid_argument) if `x` is not [N, C, spatial...] with one to three dimensions
    /// of images, or if the lists have other lengths.
    Shape output_shape(const Shape& x) const;
};

/// One dimension. Output o is the sum over t < count[o] of weight[o * taps + t] * input[start[o] +
/// t].
struct Axis {
    std::int64_t in = 1, out = 1, taps = 1;
    std::vector<std::int32_t> start, count;
    std::vector<double> weight;
    /// Outputs [first[i], last[i]) include all that read input i.
    std::vector<std::int32_t> first, last;

    /// A dimension that keeps its one element.
    Axis() : Axis({{0}}, {{1}}, 1) {}
    Axis(const Options& options, std::int64_t in_size, std::int64_t out_size,
         std::optional<double> scale);

  private:
    using Positions = std::vector<std::vector<std::int64_t>>;
    using Weights = std::vector<std::vector<double>>;
    /// From the positions that each output reads, in ascending order without gaps.
    Axis(const Positions& positions, const Weights& weights, std::int64_t in_size);
};

/// Depth, height and width; dimensions that images lack have one element.
std::array<Axis, 3> axes(const Attrs& attrs, const Shape& x);

}  // namespace dlprim::resize
