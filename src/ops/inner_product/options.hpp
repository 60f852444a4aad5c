// SPDX-License-Identifier: MIT
// Options of InnerProduct.
#pragma once

#include "base/blocks.hpp"
#include "base/schema.hpp"
#include "base/text.hpp"

#include <dlprim/op_options.hpp>
#include <dlprim/shape.hpp>

#include <cstdint>
#include <string>
#include <utility>

namespace dlprim::inner_product {

struct Options : ops::InnerProduct {
    static Options read(const Attrs& attrs) { return {dlprim::read<ops::InnerProduct>(attrs)}; }
    /// The axis, counted from the front, for an input of this shape.
    int first_feature(const Shape& x) const {
        const std::int64_t first = axis < 0 ? axis + x.rank() : axis;
        require(first >= 1 && first < x.rank(), "axis ", axis,
                " is no dimension behind the first of input ", x);
        return static_cast<int>(first);
    }
    /// The input as a matrix, with a row for each vector of features.
    Shape rows(const Shape& x) const {
        const int first = first_feature(x);
        return Shape{x.product(0, first), x.product(first, x.rank())};
    }
    Shape output(const Shape& x) const {
        Ints sizes;
        for (int d = 0; d < first_feature(x); ++d) sizes.push_back(x[d]);
        sizes.push_back(outputs);
        return Shape(sizes);
    }
    /// The weight for so many features: its type, and its shape in memory.
    std::pair<Shape, DType> weight(std::int64_t features, DType input) const {
        if (blocks.empty()) return {Shape{outputs, features}, input};
        return {block_shape(block_type(blocks), outputs, features), DType::u8};
    }
    bool has_activation() const { return !activation.empty() && activation != "identity"; }
};

}  // namespace dlprim::inner_product
