// SPDX-License-Identifier: MIT
// Options of Attention.
#pragma once

#include "base/attrs.hpp"

#include <dlprim/shape.hpp>

#include <cmath>

namespace dlprim::attention {

struct Options {
    double scale = 1;  ///< resolved
    bool is_causal = false;
    bool enable_gqa = false;
    double dropout_p = 0;
    std::int64_t stream = -1;

    static Options read(const Attrs& attrs, const Shape& q) {
        const double given = attrs.number("scale");
        return {given != 0 ? given : 1 / std::sqrt(static_cast<double>(q[-1])),
                attrs.boolean("is_causal"), attrs.boolean("enable_gqa"), attrs.number("dropout_p"),
                attrs.integer("stream")};
    }
};

}  // namespace dlprim::attention
