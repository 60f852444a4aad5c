// SPDX-License-Identifier: MIT
// Pad's options, as torch.nn.functional.pad's: pads lists (in front, behind) from the last
// dimension backward; negative pads crop. mode constant (with value), reflect, replicate or
// circular, the latter three over the last three dimensions.
#pragma once

#include "engine/strided_copy.hpp"

namespace dlprim::pad {

struct Options {
    PaddedCopy::Mode mode = PaddedCopy::Mode::constant;
    double value = 0;
    Ints before, after;  ///< one a dimension of the input
    /// Throws Error(invalid_argument) where they do not suit the input.
    Options(const Attrs& attrs, const Shape& input);
    Shape output_shape(const Shape& input) const;
};

PaddedCopy copy(const Problem& problem);

/// Output coordinates [first[k], last[k]) along one dimension that read input coordinate c under
/// reflect, replicate or circular: at most three ranges, which add up to the gradient.
struct Readers {
    std::int64_t first[3], last[3];
    Readers(PaddedCopy::Mode mode, std::int64_t c, std::int64_t before, std::int64_t x_size,
            std::int64_t y_size);
};

}  // namespace dlprim::pad
