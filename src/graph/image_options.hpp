// SPDX-License-Identifier: MIT
// What operators on images of one to three dimensions have in common: their shapes, and options
// with a size for each dimension.
#pragma once

#include "base/attrs.hpp"
#include "base/text.hpp"

#include <dlprim/shape.hpp>

#include <cstddef>

namespace dlprim {

/// The number of dimensions of images [N, C, ...]. Throws Error(invalid_argument) unless there are
/// one to three.
inline int dims_of_images(const Shape& x) {
    require(x.rank() >= 3 && x.rank() <= 5, "input ", x,
            " is not [N, C, ...] with one to three dimensions of images");
    return x.rank() - 2;
}

/// One size for each of `dims` dimensions, from an option of one or `dims` entries. Throws
/// Error(invalid_argument) for other counts.
inline Ints sizes_of_dims(const Attrs& attrs, const char* name, int dims) {
    Ints given = attrs.ints(name);
    require(given.size() == 1 || given.size() == static_cast<std::size_t>(dims), name, " has ",
            given.size(), " entries; it is one size or one for each of the ", dims,
            " dimensions of images");
    if (given.size() == 1) given.resize(static_cast<std::size_t>(dims), given[0]);
    return given;
}

}  // namespace dlprim
