// SPDX-License-Identifier: MIT
// Resize's options and geometry: for each output of a dimension the inputs that it mixes and their
// weights, by PyTorch's rules.
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

/// What a dimension is multiplied by: a matrix with few entries in each row. Output o is the sum
/// over t < count[o] of weight[o * taps + t] * input[position[o * taps + t]].
struct Axis {
    std::int64_t in = 1, out = 1, taps = 1;
    std::vector<std::int32_t> position{0}, count{1};
    std::vector<double> weight{1};
    /// fixed_taps(), as far as it follows from the options and not from the sizes; else 0. Kernels
    /// are compiled for it.
    int option_taps = 1;

    /// A dimension that keeps its one element.
    Axis() = default;
    /// Unless elements are doubles, the two weights of a linear mix are rounded to float such that
    /// they add up to one.
    Axis(const Options& options, std::int64_t in_size, std::int64_t out_size,
         std::optional<double> scale, bool in_double);
    /// The matrix transposed, by which gradients are multiplied.
    Axis transposed() const;
    /// The number of inputs that every output mixes, if it is the same and at most four; otherwise
    /// 0. If it is 1, weights are 1.
    int fixed_taps() const;

  private:
    struct Tap {
        std::int64_t position;
        double weight;
    };
    using Mix = std::vector<Tap>;  ///< what one output reads
    static void add_linear(Mix& mix, double source, bool in_double);
    static void add_cubic(Mix& mix, double source);
    static void add_filter(Mix& mix, bool is_cubic, double step, double position, std::int64_t in);
    Axis(std::int64_t in_size, const std::vector<Mix>& mixes, int option_taps);

    int readers_ = 1;  ///< option_taps of the transposed matrix
};

/// Depth, height and width; dimensions that images lack have one element. `x` is the input's shape.
std::array<Axis, 3> axes(const Attrs& attrs, const Shape& x, bool in_double);

}  // namespace dlprim::resize
