// SPDX-License-Identifier: MIT
// Options of Attention.
#pragma once

#include "base/schema.hpp"

#include <dlprim/op_options.hpp>
#include <dlprim/shape.hpp>

#include <cmath>

namespace dlprim::attention {

struct Options : ops::Attention {
    /// `scale` is resolved.
    static Options read(const Attrs& attrs, const Shape& q) {
        Options options{dlprim::read<ops::Attention>(attrs)};
        if (options.scale == 0) options.scale = 1 / std::sqrt(static_cast<double>(q[-1]));
        return options;
    }
};

}  // namespace dlprim::attention
