// SPDX-License-Identifier: MIT
// Pad's options, as for torch.nn.functional.pad. pads lists pairs (before, after), starting with
// the last dimension; negative pads crop. mode is constant (with value), reflect, replicate or
// circular. The latter three support the last three dimensions, except that circular padding which
// crops as much as it adds rotates any.
#pragma once

#include "engine/copy_engines.hpp"

namespace dlprim::pad {

struct Options {
    PaddedCopy::Mode mode = PaddedCopy::Mode::constant;
    double value = 0;
    Ints before, after;  ///< one per dimension of the input
    /// Throws Error(invalid_argument) if they do not fit the input.
    Options(const Attrs& attrs, const Shape& input);
    Shape output_shape(const Shape& input) const;
    /// Whether the mode is circular and every dimension keeps its size: no element is lost or
    /// doubled.
    bool is_rotation() const;
};

std::vector<PaddedCopy> copies(const Problem& problem);

inline constexpr Movement<PaddedCopy> movement{"Pad", "pad.copy", "pad.host", copies};

/// The output coordinates [first[k], last[k]) along one dimension that read input coordinate c, for
/// reflect, replicate or circular. There are at most three ranges, and the gradient is the sum over
/// them.
struct Readers {
    std::int64_t first[3], last[3];
    Readers(PaddedCopy::Mode mode, std::int64_t c, std::int64_t before, std::int64_t x_size,
            std::int64_t y_size);
};

}  // namespace dlprim::pad
