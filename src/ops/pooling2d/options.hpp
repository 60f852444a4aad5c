// SPDX-License-Identifier: MIT
// Pooling2D's options and geometry: windows and divisors by PyTorch's rules.
#pragma once

#include "engine/engine.hpp"

#include <array>

namespace dlprim::pooling2d {

struct Options {
    bool average = false, count_include_pad = false, ceil_mode = false, return_indices = false;
    std::array<std::int64_t, 2> kernel{1, 1}, stride{1, 1};
    std::array<std::int64_t, 4> pad{0, 0, 0, 0};  ///< top, left, bottom, right
    /// Throws Error(invalid_argument) on sizes that make no sense.
    explicit Options(const Attrs& attrs);
    /// The type of a position inside the window (row * kernel width + column): u8 where it
    /// suffices.
    DType index_type() const;
    /// [N, C, out_h, out_w]. Throws where the input holds no window.
    Shape output_shape(const Shape& input) const;
};

/// An array seen as [outer, height, width, inner]: plain NCHW has outer N*C and inner 1,
/// channels_last outer N and inner C, blocked outer N*C/b and inner b.
struct View {
    std::int64_t outer = 0, inner = 1;
    View(const Shape& shape, const Layout& layout);
};

/// Plain, channels_last, and on CPUs 16 or 8 channels a block: all operands the same.
std::vector<LayoutChoice> layouts(const Traits& device, const Problem& problem);
/// Whether an engine that computes in float without an epilogue can do it.
Verdict is_applicable(const Problem& problem, bool narrow = false);
double seconds(const Traits& device, const Problem& problem);

}  // namespace dlprim::pooling2d
