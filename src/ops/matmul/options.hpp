// SPDX-License-Identifier: MIT
// Options of MatMul: y = alpha * op(a) op(b) (+ bias), where op may transpose the last two
// dimensions.
#pragma once

#include "base/attrs.hpp"

namespace dlprim::matmul {

struct Options {
    bool transpose_a = false;
    bool transpose_b = false;
    double alpha = 1;
    bool bias = false;  ///< a third input of n elements is added to every row

    static Options read(const Attrs& attrs) {
        return {attrs.boolean("transpose_a"), attrs.boolean("transpose_b"), attrs.number("alpha"),
                attrs.boolean("bias")};
    }
    Attrs attrs() const {
        return Attrs{{"transpose_a", transpose_a},
                     {"transpose_b", transpose_b},
                     {"alpha", alpha},
                     {"bias", bias}};
    }
};

}  // namespace dlprim::matmul
