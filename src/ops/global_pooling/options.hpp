// SPDX-License-Identifier: MIT
// Options of GlobalPooling.
#pragma once

#include "base/attrs.hpp"
#include "base/text.hpp"

namespace dlprim::global_pooling {

struct Options {
    bool maximum = true;  ///< false: the mean

    explicit Options(const Attrs& attrs) : maximum(attrs.text("mode") == "max") {}
};

}  // namespace dlprim::global_pooling
