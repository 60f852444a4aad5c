// SPDX-License-Identifier: MIT
// The geometry of PadBackward in the last three dimensions: sizes of x and y, and the padding in
// front.
#pragma once

#include "ops/pad/options.hpp"

#include <algorithm>
#include <array>

namespace dlprim::pad {

struct GatherGeometry {
    PaddedCopy::Mode mode = PaddedCopy::Mode::reflect;
    std::int64_t outer = 1;  ///< product of the dimensions before the last three
    std::array<std::int64_t, 3> x{1, 1, 1}, y{1, 1, 1}, before{0, 0, 0};

    explicit GatherGeometry(const Problem& problem) {
        const Shape& dy = problem.inputs[0].shape;
        const Shape& dx = problem.outputs[0].shape;
        const Options options(problem.attrs, dx);
        mode = options.mode;
        for (int k = 1; k <= 3 && k <= dx.rank(); ++k) {
            const auto at = static_cast<std::size_t>(3 - k);
            x[at] = dx[-k];
            y[at] = dy[-k];
            before[at] = options.before[static_cast<std::size_t>(dx.rank() - k)];
        }
        outer = dx.product(0, std::max(0, dx.rank() - 3));
    }
};

}  // namespace dlprim::pad
