// SPDX-License-Identifier: MIT
// Windows: the geometry of pooling, for one to three dimensions of images, by PyTorch's rules.
#pragma once

#include "engine/engine.hpp"

#include <dlprim/op_options.hpp>

#include <array>
#include <vector>

namespace dlprim::pooling {

constexpr std::string_view backward_type = ops::PoolingBackward::type;

/// The windows along one dimension. Positions are those of the input and may be in its padding.
/// Adaptive windows do not use kernel, stride, pads and dilation.
struct Axis {
    std::int64_t in = 1, out = 1;
    std::int64_t kernel = 1, stride = 1, pad = 0, pad_end = 0, dilate = 1;
};

/// What the position of a maximum counts in: its window, row * width + column, or its image.
enum class Positions : std::uint8_t { none, window, image };

struct Windows {
    bool adaptive = false;  ///< windows divide images into parts; a global one is the whole image
    bool average = false, count_include_pad = false;
    Positions positions = Positions::none;
    int dims = 0;                ///< dimensions of images
    std::int64_t divisor = 0;    ///< of averages; 0: the window's number of elements
    std::int64_t planes = 1;     ///< N * C
    std::array<Axis, 3> axes{};  ///< depth, height, width; those that x lacks have one element
    Shape output;

    /// Throws Error(invalid_argument) if options or shape are invalid. `x`: [N, C, spatial...].
    Windows(const Attrs& attrs, const Shape& x);
    /// Those of a problem of the operator or of its gradient.
    explicit Windows(const Problem& problem);

    const Axis& h() const { return axes[1]; }
    const Axis& w() const { return axes[2]; }
    /// The elements of a plane of x, and of y.
    std::int64_t in_elements() const { return axes[0].in * axes[1].in * axes[2].in; }
    std::int64_t out_elements() const { return axes[0].out * axes[1].out * axes[2].out; }
    /// Whether the engines of two dimensions have these windows. The positions of their maxima
    /// count in the window. The other engines' count in the image.
    bool is_plain() const;
    /// The type of positions: for those in a window u8, if it is large enough.
    DType index_type(Positions in) const;

  private:
    void read_fixed(const Attrs& attrs, const Shape& x);
};

/// The window of an output along one dimension: it begins at `first`, which may be in the padding.
/// Its elements in the input are [begin, end) in steps of `step`, and this dimension divides a mean
/// by `count`.
struct Range {
    std::int64_t first, begin, end, step, count;
};

/// The ranges of all outputs, for each dimension.
using Ranges = std::array<std::vector<Range>, 3>;
Ranges ranges_of(const Windows& windows);

}  // namespace dlprim::pooling
