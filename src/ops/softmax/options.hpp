// SPDX-License-Identifier: MIT
// Options of Softmax.
#pragma once

#include "base/attrs.hpp"
#include "base/text.hpp"

#include <dlprim/shape.hpp>

namespace dlprim::softmax {

struct Options {
    bool log = false;
    int axis = 1;  ///< not negative

    Options(const Attrs& attrs, const Shape& input) : log(attrs.boolean("log")) {
        const std::int64_t given = attrs.integer("axis");
        const int rank = input.rank();
        require(given >= -rank && given < rank, "axis ", given, " is outside the input of shape ",
                input);
        axis = static_cast<int>(given < 0 ? given + rank : given);
    }
};

}  // namespace dlprim::softmax
