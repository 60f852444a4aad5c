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
    /// Throws Error(invalid_argument) if sizes are invalid.
    explicit Options(const Attrs& attrs);
    /// The type of a position in the window (row * kernel width + column): u8 if it is large
    /// enough.
    DType index_type() const;
    /// [N, C, out_h, out_w]. Throws if no window fits into the input.
    Shape output_shape(const Shape& input) const;
};

/// An array viewed as [outer, height, width, inner]. Plain NCHW has outer N*C and inner 1,
/// channels_last has outer N and inner C, and blocked has outer N*C/b and inner b.
struct View {
    std::int64_t outer = 0, inner = 1;
    View(const Shape& shape, const Layout& layout);
};

/// Plain, channels_last, and on CPUs blocks of 16 or 8 channels. All operands have the same layout.
std::vector<LayoutChoice> layouts(const Traits& device, const Problem& problem);
/// Whether an engine that computes in float without an epilogue supports the problem.
Verdict is_applicable(const Problem& problem, bool narrow = false);
double seconds(const Traits& device, const Problem& problem);

}  // namespace dlprim::pooling2d
