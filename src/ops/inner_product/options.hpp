// SPDX-License-Identifier: MIT
// Options of InnerProduct.
#pragma once

#include "base/attrs.hpp"

namespace dlprim::inner_product {

struct Options {
    std::int64_t outputs = 0;
    std::int64_t inputs = -1;  ///< -1: deduced
    bool bias = true;
    std::string activation;

    static Options read(const Attrs& attrs) {
        return {attrs.integer("outputs"), attrs.integer("inputs"), attrs.boolean("bias"),
                attrs.text("activation")};
    }
};

}  // namespace dlprim::inner_product
